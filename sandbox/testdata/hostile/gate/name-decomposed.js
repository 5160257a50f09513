// expect: error UnknownToolError: there is no tool "e\u0301cho__say"
return await codemode["e\u0301cho__say"]({ a: 1 });
