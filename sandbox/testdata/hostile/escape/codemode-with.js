// expect: result {"a":1}
with (codemode) { return await echo__say({ a: 1 }); }
