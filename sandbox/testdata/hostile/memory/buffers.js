// expect: limit memory
const all = [];
for (;;) all.push(new Uint8Array(2 ** 20));
