// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const a = () => b(), b = () => a();
return a();
