// expect: error TypeError: 'ownKeys' on proxy: trap returned duplicate entries
return await codemode.echo__say(new Proxy({}, { ownKeys: () => ["a", "a"] }));
