// expect: error TypeError: codemode can't be changed: setting "echo__say" is refused
Object.defineProperty(codemode, "echo__say", { value: () => "mine" });
return await codemode.echo__say({ a: 1 });
