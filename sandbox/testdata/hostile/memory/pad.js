// expect: limit memory
return "x".padStart(2 ** 31).length;
