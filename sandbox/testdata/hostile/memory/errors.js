// expect: limit memory
const a = [];
for (;;) a.push(new Error("x".repeat(1000)));
