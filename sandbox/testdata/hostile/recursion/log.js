// expect: limit memory || limit recursion
let a = {};
for (let i = 0; i < 200000; i++) a = { a };
console.log(a);
return 1;
