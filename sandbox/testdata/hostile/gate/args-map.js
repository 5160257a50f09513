// expect: result {"m":{"__proto__":1,"a":{"b":1}}}
return await codemode.echo__say({ m: new Map([["__proto__", 1], ["a", { b: 1 }]]) });
