// expect: limit memory || limit recursion
return /{{20 x "("}}a{{20 x "{1000})"}}/.test("a");
