// expect: limit cpu time
a: for (;;) { b: for (;;) continue a; }
