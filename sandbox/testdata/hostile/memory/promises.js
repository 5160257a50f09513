// expect: limit cpu time
const a = [];
for (;;) a.push(new Promise(() => {}));
