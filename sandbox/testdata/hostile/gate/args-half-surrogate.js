// expect: result {"a":"\ufffd"}
return await codemode.echo__say({ a: "\ud800" });
