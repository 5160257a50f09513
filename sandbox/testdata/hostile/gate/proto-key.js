// expect: result "{\"__proto__\":{\"admin\":true},\"a\":1}"
return JSON.stringify(await codemode.echo__say(JSON.parse('{"__proto__": {"admin": true}, "a": 1}')));
