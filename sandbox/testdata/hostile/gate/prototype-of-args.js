// expect: result {"a":1}
return await codemode.echo__say(Object.create({ path: "/etc/shadow" }, { a: { value: 1, enumerable: true } }));
