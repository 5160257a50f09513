// expect: result false
return /(x+x+)+y/.test("x".repeat(30000));
