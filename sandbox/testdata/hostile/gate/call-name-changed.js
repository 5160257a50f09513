// expect: result {"a":1}
Object.defineProperty(codemode.echo__say, "name", { value: "echo__wait" });
return await codemode.echo__say({ a: 1 });
