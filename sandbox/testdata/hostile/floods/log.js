// expect: limit cpu time
for (;;) console.log("x".repeat(1000));
