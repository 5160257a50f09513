// expect: limit memory || limit cpu time
const a = [];
for (;;) a.push({});
