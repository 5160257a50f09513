// expect: limit memory
const all = [];
for (;;) all.push("a".repeat(2 ** 20).split(""));
