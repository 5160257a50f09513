// expect: limit cpu time
const f = async () => { for (;;) await 0; };
await Promise.all([f(), f(), f()]);
