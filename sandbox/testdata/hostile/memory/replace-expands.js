// expect: limit memory
let s = "x".repeat(2 ** 16);
return s.replaceAll("x", s).length;
