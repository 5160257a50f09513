// expect: error TypeError: new Function does not exist here
return setTimeout.constructor("return 1")();
