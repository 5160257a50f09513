// expect: error UnknownToolError: there is no tool "0"
return await codemode[0]({ a: 1 });
