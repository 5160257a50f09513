// expect: error TypeError: new Function does not exist here
Object.defineProperty(Function.prototype, "constructor", { value: Object.getPrototypeOf(class {}).constructor });
return (() => 0).constructor("return 1")();
