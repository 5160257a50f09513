// expect: limit memory || limit cpu time
const all = [];
function* f() { yield new Array(1000); }
for (;;) { const g = f(); g.next(); all.push(g); }
