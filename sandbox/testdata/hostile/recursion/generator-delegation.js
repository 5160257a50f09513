// expect: result ["end"]
function* f(n) { if (n) yield* f(n - 1); else yield "end"; }
return [...f(20000)];
