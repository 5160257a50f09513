// expect: limit result || limit memory
return new Array(2 ** 32 - 1);
