// expect: limit memory || limit cpu time
const f = () => Promise.resolve().then(f);
f();
await new Promise(() => {});
