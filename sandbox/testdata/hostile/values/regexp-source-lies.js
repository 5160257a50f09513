// expect: error Error: no
const r = /a/;
Object.defineProperty(r, "source", { get() { throw new Error("no"); } });
return r;
