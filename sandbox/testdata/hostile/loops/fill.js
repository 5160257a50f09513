// expect: limit memory || limit cpu time
return Array.prototype.fill.call({ length: 2 ** 53 - 1, set 0(v) {} }, 1);
