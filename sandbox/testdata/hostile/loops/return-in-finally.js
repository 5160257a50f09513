// expect: limit cpu time
function f() { try { for (;;); } finally { return f(); } }
f();
