// expect: limit cpu time
return await codemode.echo__say({ get a() { for (;;); } });
