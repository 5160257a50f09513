// expect: result 1
let a = 1; <!-- a = 2
return a;
