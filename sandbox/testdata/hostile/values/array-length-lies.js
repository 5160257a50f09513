// expect: result {"0":1,"length":1099511627776}
const a = { length: 2 ** 40, 0: 1 };
Object.setPrototypeOf(a, Array.prototype);
return a;
