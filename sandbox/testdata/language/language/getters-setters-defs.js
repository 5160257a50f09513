// returns: [10,2,3,[4],[5],8,["7","_v","v","comp1","am","gm","agm","quoted-key"],9,true]
const o = { _v: 1, get v() { return this._v; }, set v(x) { this._v = x * 2; }, ["comp" + 1]: 2, async am() { return 3; }, *gm() { yield 4; }, async *agm() { yield 5; }, 'quoted-key': 6, 7: 7, __proto__: { base: 8 } };
o.v = 5;
Object.defineProperty(o, "hidden", { value: 9, enumerable: false });
const out = []; for await (const x of o.agm()) out.push(x);
return [o.v, o.comp1, await o.am(), [...o.gm()], out, o.base, Object.keys(o), o.hidden, JSON.stringify({ ...o }).length > 0];
