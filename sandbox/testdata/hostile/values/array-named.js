// expect: result [1]
const a = [1];
a.name = "x";
a[-1] = 2;
return a;
