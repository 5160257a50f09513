// expect: error TypeError: new Function does not exist here
return Reflect.construct(Function, ["return 1"])();
