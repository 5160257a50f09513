// expect: limit memory || limit cpu time
const f = () => codemode.echo__say({}).then(f, f);
f();
await new Promise((resolve) => setTimeout(resolve, 1e6));
