// expect: limit result || limit memory
return "\u0000".repeat(4 * 2 ** 20);
