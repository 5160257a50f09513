// expect: limit cpu time
return Array.prototype.forEach.call({ length: 2 ** 53 - 1 }, String);
