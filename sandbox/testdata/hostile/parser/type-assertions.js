// expect: result 1 || limit memory || limit recursion
return 1{{20000 x " as any"}};
