// expect: limit result || limit memory
let a = ["x".repeat(1000)];
for (let i = 0; i < 30; i++) a = [a, a];
return a;
