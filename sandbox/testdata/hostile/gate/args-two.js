// expect: error TypeError: codemode.echo__say takes one object, got 2 arguments: write codemode.echo
return await codemode.echo__say({ a: 1 }, { b: 2 });
