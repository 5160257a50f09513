// expect: error UnknownToolError: there is no tool "echo__say\x00"
return await codemode["echo__say\u0000"]({ a: 1 });
