// expect: error UnknownToolError: there is no tool "echo\u200b__say"
return await codemode["echo\u200b__say"]({ a: 1 });
