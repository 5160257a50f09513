// expect: result {"a":1}
return await codemode.echo__say.call({ name: "other" }, { a: 1 });
