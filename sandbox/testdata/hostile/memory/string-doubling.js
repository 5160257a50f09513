// expect: limit memory
let s = "x";
for (;;) s += s;
