// expect: result undefined
return Symbol("x");
