// expect: result {"a":[1,2],"b":{"c":3}}
for (const k of ["push", "map", "join", "slice", "concat", "forEach", "indexOf"]) Array.prototype[k] = () => { throw new Error("poisoned " + k) };
Array.prototype[Symbol.iterator] = function* () { yield* "xyz" }; Object.keys = Object.entries = () => ["constructor"]; return await codemode.echo__say({a: [1, 2], b: {c: 3}});
