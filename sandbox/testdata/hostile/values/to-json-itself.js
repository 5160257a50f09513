// expect: result {"a":1}
return { a: 1, toJSON() { return this; } };
