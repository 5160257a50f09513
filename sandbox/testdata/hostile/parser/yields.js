// expect: result "function" || limit memory || limit recursion
function* f() { return {{30000 x "yield "}}1; } return typeof f;
