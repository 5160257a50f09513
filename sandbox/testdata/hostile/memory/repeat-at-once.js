// expect: limit memory
return "x".repeat(2 ** 40).length;
