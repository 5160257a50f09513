// expect: error Error: no
return new Proxy({}, { get() { throw new Error("no"); } });
