// expect: result [{"a":1}]
return Object.freeze([Object.freeze({ a: 1 })]);
