// expect: broken sandbox worker: ended: it crashed (exit status 2) || limit memory || limit recursion
let a; return {{60000 x "a="}}1;
