// expect: result of 169020 bytes
return 7n ** 200000n;
