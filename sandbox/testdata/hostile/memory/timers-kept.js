// expect: limit memory || limit cpu time
const all = [];
for (let i = 0; i < 9000; i++) setTimeout(() => all, 1e6, new Array(10000).fill(i));
await new Promise(() => {});
