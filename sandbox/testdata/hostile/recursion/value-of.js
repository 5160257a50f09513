// expect: error RangeError: maximum call stack size exceeded (4000 calls deep) || limit cpu time
const o = { valueOf() { return +this; } };
return +o;
