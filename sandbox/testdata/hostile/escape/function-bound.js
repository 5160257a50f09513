// expect: error TypeError: new Function does not exist here
return Function.bind(null, "return 1")()();
