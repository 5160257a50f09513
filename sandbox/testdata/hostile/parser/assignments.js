// expect: limit memory || limit recursion || result 1
let a; return {{60000 x "a="}}1;
