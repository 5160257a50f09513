// expect: limit memory || limit recursion || limit cpu time
let a = {};
for (let i = 0; i < 200000; i++) a = { a };
return typeof structuredClone(a);
