// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const p = new Proxy({}, { get(t, k, r) { return r[k]; } });
return p.a;
