// expect: error TypeError: codemode.echo__say: arguments must be one object, got null
return await codemode.echo__say(null);
