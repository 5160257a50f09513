// expect: result {}
return Object.create({ a: 1 });
