// expect: limit memory
const all = [];
for (;;) all.push(new TextEncoder().encode("x".repeat(2 ** 20)));
