// expect: result {"a":1}
Object.defineProperty(Object.prototype, "a", { set() { throw new Error("set"); }, configurable: true });
return await codemode.echo__say({ ["a"]: 1 });
