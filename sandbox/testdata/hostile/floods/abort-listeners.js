// expect: limit cpu time || result 1
const c = new AbortController();
for (let i = 0; i < 50000; i++) c.signal.addEventListener("abort", () => { throw new Error("l" + i); });
c.abort();
return 1;
