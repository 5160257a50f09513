// expect: result {"b":2}
return await codemode.echo__say({ a: 1, toJSON: () => ({ b: 2 }) });
