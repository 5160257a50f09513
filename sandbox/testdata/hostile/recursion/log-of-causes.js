// expect: limit memory || limit recursion
let e = new Error("0");
for (let i = 0; i < 100000; i++) e = new Error("e", { cause: e });
console.error(e);
return 1;
