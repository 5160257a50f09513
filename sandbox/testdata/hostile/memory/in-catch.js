// expect: limit memory || limit cpu time
const all = [];
for (;;) { try { for (;;) all.push(new Array(1000).fill(1)); } catch { } }
