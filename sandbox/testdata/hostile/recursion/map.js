// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const f = () => [1].map(f);
return f();
