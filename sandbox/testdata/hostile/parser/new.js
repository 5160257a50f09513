// expect: error TypeError: Value is not a constructor || limit memory || limit recursion
return {{50000 x "new "}}Object;
