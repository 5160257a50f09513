// returns: [1,"no zzz",false,true,"numbers only",["a","z"],true,["a","zzz"],2,0,5]
const seen = [];
const p = new Proxy({ a: 1 }, { get: (t, k, r) => (seen.push(String(k)), Reflect.get(t, k, r) ?? `no ${String(k)}`), has: (t, k) => k !== "hidden", set(t, k, v) { if (typeof v !== "number") throw new TypeError("numbers only"); t[k] = v; return true; }, deleteProperty: () => true, ownKeys: () => ["a", "z"], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 0 }) });
p.b = 2; let err; try { p.c = "x"; } catch (e) { err = e.message; }
return [p.a, p.zzz, "hidden" in p, "any" in p, err, Object.keys(p), delete p.a, seen, Reflect.ownKeys({ x: 1, [Symbol.iterator]: 1 }).length, Reflect.construct(Date, [0]).getTime(), Reflect.apply(Math.max, null, [1, 5])];
