// expect: limit waiting
setInterval(() => {}, 0);
await new Promise(() => {});
