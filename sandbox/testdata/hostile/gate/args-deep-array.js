// expect: error TypeError: codemode.echo__say: args.a[0][0][0][0][0]\u2026[0][0][0][0][0][0] nests more than 1000 levels deep
let a = [];
for (let i = 0; i < 100000; i++) a = [a];
return await codemode.echo__say({ a });
