// expect: limit memory
let s = "x";
for (;;) s = btoa(s + s);
