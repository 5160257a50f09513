// expect: result "end" || limit cpu time
const f = async (n) => { await null; return n ? f(n - 1) : "end"; };
return await f(20000);
