// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
function f() { return f() + 1; }
return f();
