// expect: limit memory
const a = []; for (let i = 0; i < 30; i++) a[i] = a[i - 1] ? [a[i - 1], a[i - 1]] : [1]; return a[29].flat(Infinity).length;
