// expect: limit memory || limit cpu time
return new Array(2 ** 32 - 1).fill(0).length;
