// expect: limit cpu time
for (const x of (function* () { for (;;) yield 1; })());
