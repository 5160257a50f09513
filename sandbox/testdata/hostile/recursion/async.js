// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const f = async () => await f();
return await f();
