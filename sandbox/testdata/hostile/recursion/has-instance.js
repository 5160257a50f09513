// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const o = { [Symbol.hasInstance]: () => 1 instanceof o };
return 1 instanceof o;
