// expect: error TypeError: new Function does not exist here
return console.log.constructor("return 1")();
