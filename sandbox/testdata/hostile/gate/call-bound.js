// expect: error TypeError: codemode.echo__say takes one object, got 2 arguments: write codemode.echo
const f = codemode.echo__say.bind(null, { a: 1 });
return await f({ a: 2 });
