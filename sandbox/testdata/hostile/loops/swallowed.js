// expect: limit cpu time
for (;;) { try { for (;;); } catch { continue; } finally { continue; } }
