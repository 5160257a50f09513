// expect: error UnknownToolError: there is no tool "ECHO__SAY"
return await codemode["ECHO__SAY"]({ a: 1 });
