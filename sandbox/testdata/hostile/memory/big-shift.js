// expect: limit memory
return 1n << 2n ** 40n;
