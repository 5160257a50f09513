// expect: limit memory || limit cpu time
const all = [];
for (;;) all.push((() => 1).bind(null, new Array(100)));
