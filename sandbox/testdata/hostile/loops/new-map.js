// expect: limit cpu time
return new Map({ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: [1, 1] }) }) });
