// expect: error TypeError: codemode.echo__say: args.a.a.a.a.a.a\u2026.a.a.a.a.a.a nests more than 1000 levels deep
let a = {};
for (let i = 0; i < 2000; i++) a = { a };
return await codemode.echo__say(a);
