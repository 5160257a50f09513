// expect: limit cpu time
return /(?=(a+)+$)b/.test("a".repeat(40) + "!") || /(a+)+(?=b)/.test("a".repeat(40));
