// expect: error TypeError: new Function does not exist here
return (function* () {}).constructor("yield 1")().next();
