// expect: error TypeError: codemode.echo__say: arguments must be one object, got a function
return await codemode.echo__say(() => ({ a: 1 }));
