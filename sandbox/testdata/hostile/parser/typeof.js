// expect: result "string" || limit memory || limit recursion
return {{30000 x "typeof "}}1;
