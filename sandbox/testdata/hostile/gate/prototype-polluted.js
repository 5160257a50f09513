// expect: result {"a":1}
Object.prototype.admin = true;
Object.prototype.path = "/etc/shadow";
return await codemode.echo__say({ a: 1 });
