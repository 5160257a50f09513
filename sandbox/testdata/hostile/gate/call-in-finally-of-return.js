// expect: result {"a":1}
try { return await codemode.echo__say({a: 1}) } finally { await codemode.echo__say({b: 2}) }
