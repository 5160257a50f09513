// expect: limit memory || limit recursion
return {{200000 x "!"}}1;
