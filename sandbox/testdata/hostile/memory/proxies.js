// expect: limit memory || limit cpu time
const all = [];
for (;;) all.push(new Proxy({}, {}));
