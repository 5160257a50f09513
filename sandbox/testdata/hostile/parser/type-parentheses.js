// expect: limit recursion || limit memory
let a: {{40000 x "("}}1{{40000 x ")"}} = 1; return 1;
