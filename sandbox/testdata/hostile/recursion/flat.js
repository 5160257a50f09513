// expect: limit memory || limit recursion
let a = [1];
for (let i = 0; i < 500000; i++) a = [a];
return a.flat(Infinity);
