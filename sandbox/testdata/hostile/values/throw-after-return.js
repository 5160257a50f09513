// expect: error Error: after
try { return 1; } finally { throw new Error("after"); }
