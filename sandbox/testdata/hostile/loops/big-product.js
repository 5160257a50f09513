// expect: error RangeError: Division by zero || limit cpu time
let n = 7n ** 3000000n;
for (;;) n = (n * n) % (n - 1n);
