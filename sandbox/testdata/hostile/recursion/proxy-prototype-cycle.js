// expect: limit cpu time
const a = new Proxy({}, { getPrototypeOf: () => b }), b = new Proxy({}, { getPrototypeOf: () => a });
return a instanceof Array;
