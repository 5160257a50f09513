// expect: result "after"
const a = 1 // x ; return "after";
return a;
