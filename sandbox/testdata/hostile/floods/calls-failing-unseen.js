// expect: result 1
for (let i = 0; i < 900; i++) codemode.echo__denied({ i });
await codemode.echo__say({});
return 1;
