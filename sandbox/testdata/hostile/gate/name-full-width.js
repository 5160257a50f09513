// expect: error UnknownToolError: there is no tool "\uff45cho__say"
return await codemode["\uff45cho__say"]({ a: 1 });
