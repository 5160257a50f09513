// expect: error TypeError: new Function does not exist here
return new (new Proxy(Function, {}))("return 1")();
