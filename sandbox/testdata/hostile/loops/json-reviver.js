// expect: limit cpu time
return JSON.parse("[1]", () => { for (;;); });
