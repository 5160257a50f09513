// expect: error UnknownToolError: there is no tool "echo__say.x"
return await codemode.echo["say.x"]({ a: 1 });
