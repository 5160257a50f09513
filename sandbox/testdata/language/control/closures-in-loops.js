// returns: [[0,1,2,"x","y"],[2,2],2]
const fs = [];
for (let i = 0; i < 3; i++) fs.push(() => i);
for (const k in { x: 1, y: 2 }) fs.push(() => k);
var vs = []; for (var j = 0; j < 2; j++) vs.push(() => j);
const counter = (() => { let n = 0; return { inc: () => ++n, get n() { return n; } }; })();
counter.inc(); counter.inc();
return [fs.map((f) => f()), vs.map((f) => f()), counter.n];
