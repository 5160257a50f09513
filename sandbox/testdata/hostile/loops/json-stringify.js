// expect: limit cpu time
const list = new Array(2 ** 18).fill({ a: 1 });
for (;;) JSON.stringify(list);
