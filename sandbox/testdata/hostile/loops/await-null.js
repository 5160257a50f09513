// expect: limit cpu time
for (;;) await null;
