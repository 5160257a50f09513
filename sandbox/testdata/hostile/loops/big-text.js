// expect: limit cpu time
return String(7n ** 5000000n).length;
