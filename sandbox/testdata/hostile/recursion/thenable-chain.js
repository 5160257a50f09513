// expect: result "end"
const f = (n) => ({ then: (resolve) => resolve(n ? f(n - 1) : "end") });
return await f(20000);
