// expect: result false
return Object.is((await codemode.echo__say({ n: -0 })).n, -0);
