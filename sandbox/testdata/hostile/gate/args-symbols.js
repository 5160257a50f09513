// expect: result {"b":1}
return await codemode.echo__say({ [Symbol("path")]: "/etc/shadow", a: Symbol("x"), b: 1 });
