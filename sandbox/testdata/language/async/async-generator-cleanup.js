// returns: [1,"cleanup","cleanup","stop",5]
const log = [];
async function* gen() { try { yield 1; yield 2; } finally { log.push("cleanup"); } }
for await (const x of gen()) { log.push(x); break; }
const g = gen();
await g.next();
try { await g.throw(new Error("stop")); } catch (e) { log.push(e.message); }
log.push((await g.return(5)).value);
return log;
