// expect: result {"a":1}
return Object.defineProperty({ a: 1 }, "b", { value: 2, enumerable: false });
