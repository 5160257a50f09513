// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
let n = 0; const f = () => JSON.parse("[1]", () => (n++, f())); return f();
