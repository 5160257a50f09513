// expect: error UnknownToolError: there is no tool ""
return await codemode[""]({ a: 1 });
