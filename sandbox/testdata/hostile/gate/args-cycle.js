// expect: error TypeError: codemode.echo__say: args.self refers back to args: a cycle has no JSON fo
const a = { n: 1 };
a.self = a;
return await codemode.echo__say(a);
