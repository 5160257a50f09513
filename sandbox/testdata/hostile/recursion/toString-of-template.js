// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
const o = {toString() { return `${o}` }}; return `${o}`;
