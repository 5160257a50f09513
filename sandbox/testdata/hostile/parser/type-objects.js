// expect: limit memory || limit recursion || limit cpu time
let a: {{20000 x "{a:"}}1{{20000 x "}"}}; return 1;
