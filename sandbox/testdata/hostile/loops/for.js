// expect: limit cpu time
for (;;);
