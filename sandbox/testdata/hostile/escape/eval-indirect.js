// expect: error TypeError: eval does not exist here
return (0, eval)("1 + 1");
