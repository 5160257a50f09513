// expect: result of 23891 bytes
return Array.from({ length: 5000 }, (_, i) => Promise.resolve(i));
