// expect: limit recursion || limit memory || limit cpu time
const a = [];
a.push(a);
return a.flat(Infinity);
