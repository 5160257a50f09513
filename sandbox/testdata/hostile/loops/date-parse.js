// expect: limit cpu time
for (;;) Date.parse("2026-01-01T00:00:00Z" + Math.random());
