// expect: limit memory
return "\u20ac".repeat(2 ** 28).length;
