// expect: result {"a":1}
return await codemode.echo__say({ then: (resolve) => resolve({ b: 1 }), a: 1 });
