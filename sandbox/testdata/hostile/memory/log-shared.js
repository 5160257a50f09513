// expect: result 1 || limit memory
let a = ["x".repeat(1000)];
for (let i = 0; i < 30; i++) a = [a, a];
console.log(a);
return 1;
