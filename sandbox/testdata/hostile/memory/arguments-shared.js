// expect: error LimitError: codemode.echo__say was not sent: the limit of 16 MB of arguments is reac || limit memory
let a = ["x".repeat(1000)];
for (let i = 0; i < 30; i++) a = [a, a];
return await codemode.echo__say({ a });
