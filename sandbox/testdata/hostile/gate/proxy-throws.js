// expect: error Error: no keys
return await codemode.echo__say(new Proxy({}, { ownKeys() { throw new Error("no keys"); } }));
