// expect: result 1 || limit memory || limit recursion
type T = {{10000 x "1 extends 1 ? "}}1{{10000 x " : 1"}}; return 1;
