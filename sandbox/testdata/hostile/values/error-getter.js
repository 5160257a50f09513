// expect: error Error: no
const e = new Error("x");
Object.defineProperty(e, "message", { get() { throw new Error("no"); } });
return e;
