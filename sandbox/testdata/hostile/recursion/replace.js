// expect: error RangeError: maximum call stack size exceeded (4000 calls deep) || limit cpu time
const f = () => "a".replace("a", f);
return f();
