// expect: error TypeError: Value is not a constructor
return await new codemode.echo__say({ a: 1 });
