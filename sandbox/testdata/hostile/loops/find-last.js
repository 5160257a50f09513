// expect: limit memory
return Array.prototype.findLast.call({ length: 2 ** 53 - 1 }, Boolean);
