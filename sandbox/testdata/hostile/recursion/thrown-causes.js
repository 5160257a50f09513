// expect: limit memory || limit recursion || limit cpu time
let e = new Error("0");
for (let i = 0; i < 100000; i++) e = new Error("e" + i, { cause: e });
throw e;
