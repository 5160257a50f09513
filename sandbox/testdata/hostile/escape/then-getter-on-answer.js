// expect: result [1,"object"]
const r = await codemode.echo__say({then: 1, constructor: {name: "x"}}); return [r.then, typeof r.constructor];
