// expect: limit cpu time
const p = new Proxy({}, {getPrototypeOf: () => { for (;;); }}); return p instanceof Object;
