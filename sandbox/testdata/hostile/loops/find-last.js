// expect: error InternalError: the script engine failed at this script
return Array.prototype.findLast.call({ length: 2 ** 53 - 1 }, Boolean);
