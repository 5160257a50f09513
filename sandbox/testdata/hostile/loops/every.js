// expect: limit cpu time
return Array.prototype.every.call({ length: 2 ** 53 - 1 }, Boolean);
