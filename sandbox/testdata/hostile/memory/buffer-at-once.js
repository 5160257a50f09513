// expect: limit memory
return new ArrayBuffer(2 ** 40).byteLength;
