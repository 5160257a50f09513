// returns: [[1,false],[42,false],["r",false],[8,false],[9,false],[null,true]]
async function* inner() { const got = yield 1; yield got * 2; return "r"; }
async function* outer() { const r = yield* inner(); yield r; yield* [8, 9]; }
const g = outer();
const steps = [await g.next(), await g.next(21), await g.next(), await g.next(), await g.next(), await g.next()];
return steps.map((s) => [s.value ?? null, s.done]);
