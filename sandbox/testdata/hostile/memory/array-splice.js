// expect: limit cpu time
const a = new Array(1000).fill(1);
for (;;) a.splice(0, 0, ...a);
