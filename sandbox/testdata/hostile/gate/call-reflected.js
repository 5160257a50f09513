// expect: result {"a":1}
return await Reflect.apply(codemode.echo__say, codemode, [{ a: 1 }]);
