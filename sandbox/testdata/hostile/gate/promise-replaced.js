// expect: result {"a":1}
Promise = class { constructor() { throw new Error("mine"); } };
return await codemode.echo__say({ a: 1 });
