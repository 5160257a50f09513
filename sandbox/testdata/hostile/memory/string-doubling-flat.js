// expect: limit memory
let s = "x";
for (;;) { s = `${s}${s}`; s.charCodeAt(0); }
