// expect: limit cpu time
const f = () => queueMicrotask(f);
f();
await new Promise(() => {});
