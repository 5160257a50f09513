// expect: limit memory
const all = [];
try { throw 1; } finally { for (;;) all.push("x".repeat(1e6) + all.length); }
