// expect: limit cpu time
setTimeout(() => { for (;;); }, 1);
await new Promise(() => {});
