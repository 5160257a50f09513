// expect: result 1 || limit memory || limit recursion
let a: {{20000 x "Array<"}}1{{20000 x ">"}}; return 1;
