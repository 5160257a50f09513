// expect: limit memory || limit recursion
let a; return {{60000 x "a="}}1;
