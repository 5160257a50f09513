// expect: limit memory || limit recursion || result true
return {{200000 x "!"}}1;
