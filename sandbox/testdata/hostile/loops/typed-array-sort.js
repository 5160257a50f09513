// expect: limit cpu time
const a = new Float64Array(2 ** 20).map((_, i) => -i);
for (;;) a.sort().reverse();
