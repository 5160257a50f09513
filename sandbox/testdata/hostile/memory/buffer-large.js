// expect: limit memory
return new Uint8Array(2 ** 30).length;
