// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
function f(n) { try { return f(n + 1); } catch (e) { return e.name; } }
return f(0);
