// expect: error RangeError: maximum call stack size exceeded (4000 calls deep) || limit cpu time
const p = new Proxy({}, { defineProperty(t, k, d) { return Reflect.defineProperty(p, k, d); } });
p.a = 1;
