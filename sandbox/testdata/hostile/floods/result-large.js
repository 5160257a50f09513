// expect: limit result || limit memory
return "x".repeat(20 * 2 ** 20);
