// expect: error TypeError: Cannot redefine property: eval
Object.defineProperty(globalThis, "eval", { value: (text) => Function(text)() });
return eval("return 1");
