// returns: 1
// logs: ["Outer","  in outer","    multi\n    line","    warned","out","default: 1","default: 2","x: 1","default: 1","Assertion failed: failed here","Assertion failed","Assertion failed { a: 1 }","{ a: [Object] }","{\n  a: { b: { c: { d: 1 } } }\n}","{ x: 1 }","t: 0ms so far","t: 0ms","c","  { a: 1, b: { c: 2 } }","end"]
console.group("Outer"); console.log("in outer"); console.group(); console.log("multi\nline"); console.warn("warned"); console.groupEnd(); console.groupEnd(); console.log("out");
console.count(); console.count(); console.count("x"); console.countReset(); console.count();
console.assert(true, "silent"); console.assert(false, "failed %s", "here"); console.assert(0); console.assert(false, { a: 1 });
console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 }); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: null }); console.dirxml({ x: 1 });
console.time("t"); console.timeLog("t", "so far"); console.timeEnd("t");
console.groupCollapsed("c"); console.log({ a: 1, b: { c: 2 } }); console.groupEnd(); console.groupEnd(); console.log("end");
return 1;
