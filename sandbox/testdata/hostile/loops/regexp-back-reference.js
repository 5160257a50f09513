// expect: limit cpu time
return /^(a*)*\1b$/.test("a".repeat(40));
