// expect: error TypeError: Illegal generator state
let g;
function* f() { g.next(); }
g = f();
g.next();
