// expect: error UnknownToolError: there is no tool "echo__say "
return await codemode["echo__say "]({ a: 1 });
