// expect: error TypeError: codemode.echo__say: arguments must be one object, got an array
return await codemode.echo__say([{ a: 1 }]);
