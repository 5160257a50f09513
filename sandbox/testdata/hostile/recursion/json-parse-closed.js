// expect: error SyntaxError: More than 1000 levels in JSON at position 1001 (line 1 column 1002)
return JSON.parse("[".repeat(500000) + "]".repeat(500000)).length;
