// expect: limit cpu time
return Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 1, 2 ** 52);
