// expect: result {"a":2}
return await codemode.echo__say({ get a() { codemode.echo__say({ inner: 1 }); return 2; } });
