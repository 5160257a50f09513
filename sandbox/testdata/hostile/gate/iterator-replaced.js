// expect: result {"list":[1,2]}
Array.prototype[Symbol.iterator] = function* () { yield "polluted"; };
return await codemode.echo__say({ list: [1, 2] });
