// expect: limit memory || limit result
return new Uint8Array(2 ** 23);
