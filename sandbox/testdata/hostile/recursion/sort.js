// expect: limit cpu time
const f = () => [2, 1].sort(f);
return f();
