// expect: mit memory || limit memory || limit result
return "\u0000".repeat(4 * 2 ** 20);
