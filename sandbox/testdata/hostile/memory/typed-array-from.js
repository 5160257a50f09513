// expect: limit memory
return Uint8Array.from({ length: 2 ** 31 }).length;
