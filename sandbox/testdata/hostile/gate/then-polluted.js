// expect: result "stolen"
Object.prototype.then = function (resolve) { delete Object.prototype.then; resolve("stolen"); };
return await codemode.echo__say({ a: 1 });
