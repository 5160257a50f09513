// expect: error TypeError: new Function does not exist here
return class {}.constructor("return 1")();
