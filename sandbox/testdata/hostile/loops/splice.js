// expect: limit cpu time
return Array.prototype.splice.call({ length: 2 ** 53 - 1 }, 0, 1);
