// expect: result "/(?:)/" || limit memory || limit recursion
return /{{60000 x "[a"}}/.test("");
