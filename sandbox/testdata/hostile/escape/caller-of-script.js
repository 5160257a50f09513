// expect: result undefined
function f() { return f.caller; }
return f();
