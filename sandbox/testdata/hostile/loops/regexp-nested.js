// expect: limit cpu time
return /(?!x)^(([a-z])+.)+[A-Z]([a-z])+$/.test("a".repeat(60));
