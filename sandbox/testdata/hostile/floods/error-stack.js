// expect: error Error: x
const e = new Error("x");
e.stack = "\tat f (script:1:1(1))\n".repeat(200000);
throw e;
