// expect: limit memory
const s = "a".repeat(2 ** 20);
for (;;) s.replaceAll("a", "b");
