// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const o = { get a() { return this.a; } };
return o.a;
