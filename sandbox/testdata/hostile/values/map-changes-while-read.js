// expect: result {"a":2}
const m = new Map([["a", { toJSON() { m.set("k" + m.size, this); return m.size; } }]]);
return m;
