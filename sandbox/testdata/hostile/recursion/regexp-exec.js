// expect: error RangeError: maximum call stack size exceeded (4000 calls deep) || limit cpu time
const r = /a/;
r.exec = () => "a".replace(r, "b");
return "a".replace(r, "b");
