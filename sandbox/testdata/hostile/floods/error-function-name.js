// expect: error Error: x
const f = { ["n".repeat(200000)]() { throw new Error("x"); } };
for (const k in f) f[k]();
