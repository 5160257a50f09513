// expect: limit memory || limit recursion
let a = [];
for (let i = 0; i < 500000; i++) a = [a];
return JSON.stringify(a).length;
