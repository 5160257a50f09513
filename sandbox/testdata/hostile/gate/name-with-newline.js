// expect: error UnknownToolError: there is no tool "echo__say\n"
return await codemode.raw("echo__say\n", { a: 1 });
