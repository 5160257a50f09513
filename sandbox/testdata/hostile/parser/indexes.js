// expect: result true || limit memory || limit recursion
const a = []; a[0] = a; return a{{60000 x "[0]"}} === a;
