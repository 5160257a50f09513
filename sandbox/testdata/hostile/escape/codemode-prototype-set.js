// expect: error TypeError: codemode can't be changed: setting its prototype is refused
Object.setPrototypeOf(codemode, { echo__say: () => "mine" });
return await codemode.echo__say({ a: 1 });
