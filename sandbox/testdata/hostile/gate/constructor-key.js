// expect: result {"constructor":{"prototype":{"a":1}}}
return await codemode.echo__say({ constructor: { prototype: { a: 1 } } });
