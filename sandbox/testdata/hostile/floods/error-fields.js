// expect: error Error: x
const e = new Error("x");
for (let i = 0; i < 20000; i++) e["field" + i] = "x".repeat(100);
throw e;
