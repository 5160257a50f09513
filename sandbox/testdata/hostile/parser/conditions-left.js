// expect: result 1 || limit memory || limit recursion
return {{30000 x "1 ? "}}1{{30000 x " : 1"}};
