// expect: result 0
const names = ["codemode", "goja", "host", "internal", "nodejs.util.inspect.custom"].map(n => Symbol.for(n)); return names.filter(s => s in codemode || s in globalThis || s in console).length;
