// expect: limit memory || limit recursion
return String.fromCharCode.apply(null, { length: 50000000 });
