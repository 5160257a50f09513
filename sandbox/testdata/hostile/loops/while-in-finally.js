// expect: limit cpu time
try { for (;;); } finally { for (;;); }
