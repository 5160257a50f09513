// expect: limit result || limit memory
const a = [];
a[2 ** 32 - 2] = 1;
return a;
