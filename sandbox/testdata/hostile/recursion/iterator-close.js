// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const it = { [Symbol.iterator]: () => it, next: () => ({ done: false }), return() { for (const x of it) break; return {}; } };
for (const x of it) break;
