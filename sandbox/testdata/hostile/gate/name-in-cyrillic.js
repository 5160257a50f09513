// expect: error UnknownToolError: there is no tool "\u0435cho__say"
return await codemode["\u0435cho__say"]({ a: 1 });
