// expect: limit cpu time
return BigInt("9".repeat(4000000)) % 7n;
