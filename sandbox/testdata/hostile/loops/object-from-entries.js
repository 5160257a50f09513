// expect: limit cpu time
return Object.fromEntries({ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: ["a", 1] }) }) });
