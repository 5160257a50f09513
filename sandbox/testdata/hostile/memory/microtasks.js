// expect: limit memory || limit cpu time
for (;;) Promise.resolve().then(() => 1);
