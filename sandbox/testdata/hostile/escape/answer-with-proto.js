// expect: result [false,1]
const r = await codemode.echo__say(JSON.parse('{"a":{"b":1}}')); r.__proto__.polluted = 1; const s = await codemode.echo__say({c: 1}); return [s.polluted === undefined, ({}).polluted];
