// expect: result 2
const p = codemode.echo__say({a: 1}); class P extends Promise { constructor(f) { super(f); P.seen = (P.seen || 0) + 1; } }
try { p.constructor = P } catch {} ; const q = p.then(x => x); await q; return [q instanceof P, P.seen || 0].length;
