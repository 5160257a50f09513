// expect: limit memory || limit cpu time
let a = ["x".repeat(1000)];
for (let i = 0; i < 30; i++) a = [a, a];
return JSON.stringify(a).length;
