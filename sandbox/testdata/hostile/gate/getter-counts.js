// expect: result 1
let n = 0;
await codemode.echo__say({ get a() { return ++n; } });
return n;
