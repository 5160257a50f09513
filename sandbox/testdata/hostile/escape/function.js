// expect: error TypeError: new Function does not exist here
return new Function("return 1")();
