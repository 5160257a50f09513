// expect: result {"a":1}
try { codemode.echo__say = () => "mine"; } catch (e) {}
return await codemode.echo__say({ a: 1 });
