// expect: limit cpu time
const all = [];
for (;;) all.push(new Float64Array(new Array(2 ** 16).fill(1)));
