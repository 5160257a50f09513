// expect: error TypeError: setTimeout: the first argument must be a function, got string "globalThis
setTimeout("globalThis.done = 1", 1);
return await new Promise((resolve) => setTimeout(() => resolve(globalThis.done), 5));
