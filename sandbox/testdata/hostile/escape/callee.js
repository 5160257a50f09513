// expect: result undefined
function f() { return arguments.callee.caller; }
return f();
