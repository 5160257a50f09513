// expect: limit cpu time
await codemode.echo__say({});
for (;;);
