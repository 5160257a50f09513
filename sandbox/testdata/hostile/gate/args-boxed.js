// expect: result {"s":"a","n":1,"b":false,"o":false}
return await codemode.echo__say({s: new String("a"), n: new Number(1), b: new Boolean(false), o: Object(1n) === 1n});
