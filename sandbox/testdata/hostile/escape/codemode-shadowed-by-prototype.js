// expect: result {"a":1}
Object.prototype.echo__say = () => "mine";
globalThis.__proto__.codemode = { echo__say: () => "mine" };
return await codemode.echo__say({ a: 1 });
