// expect: mit result || limit memory || limit result
let a = ["x".repeat(1000)];
for (let i = 0; i < 30; i++) a = [a, a];
return a;
