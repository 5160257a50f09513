// expect: error TypeError: new Function does not exist here
return (() => 0).constructor("return 1")();
