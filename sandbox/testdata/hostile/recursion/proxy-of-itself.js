// expect: limit memory || limit recursion || limit cpu time
const handler = {};
const p = new Proxy({}, handler);
Object.setPrototypeOf(handler, p);
return p.a;
