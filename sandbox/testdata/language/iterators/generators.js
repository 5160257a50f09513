// returns: [[0,1,1,2,3,5,8,13,21],1,[2,3],"a","sent","caught err",{"done":true}]
function* fib() { let [a, b] = [0, 1]; for (;;) { yield a; [a, b] = [b, a + b]; } }
const out = [];
for (const n of fib()) { if (n > 30) break; out.push(n); }
function* tree(t) { if (!t) return; yield* tree(t.l); yield t.v; yield* tree(t.r); }
const [first, ...rest] = tree({ v: 2, l: { v: 1 }, r: { v: 3 } });
function* two() { const x = yield "a"; try { yield x; } catch (e) { yield "caught " + e; } }
const g = two();
return [out, first, rest, g.next().value, g.next("sent").value, g.throw("err").value, g.next()];
