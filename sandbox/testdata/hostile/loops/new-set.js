// expect: limit cpu time
return new Set({ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) });
