// expect: result [[{"a":1},{"a":1},{"a":1}],2]
const p = codemode.echo__say({a: 1}); let n = 0; const t = {then(f) { f(p); f(p); n++ }}; const r = await Promise.all([t, t, p]); return [r, n];
