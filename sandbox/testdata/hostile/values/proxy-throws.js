// expect: error Error: no keys
return new Proxy({}, { ownKeys() { throw new Error("no keys"); } });
