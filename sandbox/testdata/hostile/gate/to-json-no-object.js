// expect: error TypeError: codemode.echo__say: arguments must be one object, got an object
return await codemode.echo__say({ toJSON: () => "text" });
