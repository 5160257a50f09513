// expect: limit memory
const a = [];
for (;;) a.push("x".repeat(1e5) + a.length);
