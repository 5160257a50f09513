// expect: result of 277781 bytes || limit memory
return Object.fromEntries(Array.from({ length: 20000 }, (_, i) => ["k" + i, i]));
