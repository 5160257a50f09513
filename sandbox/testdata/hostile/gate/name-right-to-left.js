// expect: error UnknownToolError: there is no tool "\u202eyas__ohce"
return await codemode["\u202eyas__ohce"]({ a: 1 });
