// expect: limit cpu time
const [...all] = { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: undefined }) }) };
