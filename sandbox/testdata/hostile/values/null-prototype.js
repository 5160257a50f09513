// expect: result {"a":1}
return Object.assign(Object.create(null), { a: 1 });
