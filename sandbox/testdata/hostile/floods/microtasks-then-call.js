// expect: result {"a":1}
for (let i = 0; i < 10000; i++) Promise.resolve().then(() => i);
return await codemode.echo__say({ a: 1 });
