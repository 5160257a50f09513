// expect: error TypeError: new Function does not exist here
return globalThis.constructor.constructor("return 1")();
