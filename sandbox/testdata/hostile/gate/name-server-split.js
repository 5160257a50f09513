// expect: error UnknownToolError: there is no tool "echo____say"
return await codemode["echo__"]["say"]({ a: 1 });
