// expect: error RangeError: maximum call stack size exceeded (4000 calls deep) || limit cpu time
const o = { set a(v) { this.a = v; } };
o.a = 1;
