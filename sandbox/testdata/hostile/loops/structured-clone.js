// expect: limit memory || limit cpu time
const list = new Array(2 ** 16).fill(0).map((_, i) => ({ i }));
for (;;) structuredClone(list);
