// expect: result [1,"gone",null]
const a = [1, 2, 3];
Object.defineProperty(a, 1, { get() { a.length = 0; return "gone"; } });
return a;
