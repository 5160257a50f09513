// returns: [true,true,0,true,true,"/x/gi",false,3,[1,2],true,"r","DataCloneError","s",2,null]
const o = { d: new Date(0), m: new Map([["k", new Set([1])]]), r: /x/gi, n: [1, , 3], u: new Uint8Array([1, 2]), e: new RangeError("r") };
o.self = o;
const c = structuredClone(o);
let err; try { structuredClone({ f() {} }); } catch (e) { err = e.name; }
return [c !== o, c.self === c, c.d.getTime(), c.d instanceof Date, c.m.get("k").has(1), String(c.r), 1 in c.n, c.n.length, [...c.u], c.e instanceof RangeError, c.e.message, err, structuredClone("s"), structuredClone(Object(1)) + 1, structuredClone(null)];
