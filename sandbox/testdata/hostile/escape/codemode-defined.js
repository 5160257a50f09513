// expect: error TypeError: Cannot redefine property: codemode
Object.defineProperty(globalThis, "codemode", { value: { echo__say: () => "mine" } });
return await codemode.echo__say({ a: 1 });
