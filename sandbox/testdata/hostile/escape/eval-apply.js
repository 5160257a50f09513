// expect: error TypeError: eval does not exist here
return Reflect.apply(eval, null, ["1 + 1"]);
