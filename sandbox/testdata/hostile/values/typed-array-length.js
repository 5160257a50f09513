// expect: result [0,0]
const a = new Uint8Array(2);
Object.defineProperty(a, "length", { value: 2 ** 40 });
return a;
