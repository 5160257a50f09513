// expect: limit memory
return Array.prototype.sort.call({ length: 2 ** 53 - 1 });
