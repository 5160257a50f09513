// expect: result {"a":1}
const mine = new Proxy(codemode, {});
return await mine.echo__say({ a: 1 });
