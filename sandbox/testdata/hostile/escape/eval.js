// expect: error TypeError: eval does not exist here
return eval("1 + 1");
