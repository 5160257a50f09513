// expect: limit cpu time
codemode.echo__say({}).then(() => { for (;;); });
await new Promise((resolve) => setTimeout(resolve, 10000));
