// expect: error TypeError: new Function does not exist here
return Array.prototype.map.constructor("return 1")();
