// expect: error TypeError: codemode.echo__say: arguments must be one object, got a promise: await it
return await codemode.echo__say(Promise.resolve({ a: 1 }));
