// expect: limit recursion || limit memory || limit cpu time
const p = new Proxy({}, {});
Object.setPrototypeOf(p, p);
