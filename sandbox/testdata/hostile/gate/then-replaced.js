// expect: result {"a":1}
Promise.prototype.then = function () { return "polluted"; };
return await codemode.echo__say({ a: 1 });
