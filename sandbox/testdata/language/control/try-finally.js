// returns: [["try","catch x","finally wins","end"],["finally1","finally2","fell","finally3","fell","finally4","break"],5]
const log = [];
const f = (n) => { try { if (n === 1) return "try"; if (n === 2) throw new Error("x"); log.push("fell"); } catch ({ message }) { return "catch " + message; } finally { log.push("finally" + n); if (n === 3) return "finally wins"; } return "end"; };
const r = [f(1), f(2), f(3), f(4)];
let n = 0; do { n++; if (n === 3) continue; } while (n < 5);
while (true) { try { break; } finally { log.push("break"); } }
return [r, log, n];
