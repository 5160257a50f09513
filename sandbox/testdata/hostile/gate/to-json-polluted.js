// expect: error TypeError: codemode.echo__say: args nests more than 1000 levels deep
Object.prototype.toJSON = () => ({ path: "/etc/shadow" });
return await codemode.echo__say({ path: "/tmp/x" });
