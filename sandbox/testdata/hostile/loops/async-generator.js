// expect: limit cpu time
async function* f() { for (;;) yield 1; }
for await (const x of f());
