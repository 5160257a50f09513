// expect: limit cpu time
const t = { then(resolve) { resolve(t); } };
await t;
