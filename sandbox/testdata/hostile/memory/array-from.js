// expect: limit memory || limit cpu time
return Array.from({ length: 2 ** 32 }).length;
