// expect: limit memory
return String(1n << 2n ** 31n).length;
