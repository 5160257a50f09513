// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
function f() { try { f(); } catch { f(); } }
f();
