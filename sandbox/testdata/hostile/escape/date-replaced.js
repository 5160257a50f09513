// expect: result [{"a":1},-1]
Date = class { static now() { return -1 } constructor() { throw new Error("date") } }; const r = await codemode.echo__say({a: 1}); return [r, Date.now()];
