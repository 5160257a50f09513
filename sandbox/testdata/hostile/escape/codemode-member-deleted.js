// expect: result {"a":1}
try { delete codemode.echo__say; } catch (e) {}
return await codemode.echo__say({ a: 1 });
