// expect: limit cpu time
let a = [1];
for (;;) a = [...a, ...a];
