// expect: limit cpu time
let n = 3n;
for (;;) n *= n;
