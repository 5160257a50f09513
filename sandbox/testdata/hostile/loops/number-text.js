// expect: limit cpu time
for (;;) (Math.random() * 1e300).toString(7);
