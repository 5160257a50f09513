// expect: limit memory || limit cpu time
return await Promise.race({ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) });
