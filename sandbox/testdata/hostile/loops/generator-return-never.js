// expect: result 1
function* g() { try { yield 1 } finally { for (;;) yield 2 } } const [a] = g(); return a;
