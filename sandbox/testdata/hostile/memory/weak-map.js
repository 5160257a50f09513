// expect: limit memory || limit cpu time
const keep = [], w = new WeakMap();
for (;;) { const k = {}; keep.push(k); w.set(k, new Array(100)); }
