// expect: error UnknownToolError: there is no tool "echo__say\ufffd"
return await codemode["echo__say\ud800"]({ a: 1 });
