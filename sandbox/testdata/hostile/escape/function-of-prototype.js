// expect: error TypeError: new Function does not exist here
return Function.prototype.constructor("return 1")();
