// expect: limit cpu time
for (;;) console.log();
