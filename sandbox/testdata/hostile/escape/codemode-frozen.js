// expect: error TypeError: Cannot make a dynamic object non-extensible
Object.freeze(codemode);
return await codemode.echo__say({ a: 1 });
