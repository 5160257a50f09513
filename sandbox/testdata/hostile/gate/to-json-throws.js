// expect: error TypeError: not today
return await codemode.echo__say({ toJSON() { throw new TypeError("not today"); } });
