// returns: [23416728348467684,["123","132","213","231","312","321"],4,3628800]
const memo = (f, c = new Map()) => (n) => c.get(n) ?? (c.set(n, f(n)), c.get(n));
const fib = memo((n) => (n < 2 ? n : fib(n - 1) + fib(n - 2)));
const perms = (xs) => (xs.length < 2 ? [xs] : xs.flatMap((x, i) => perms(xs.toSpliced(i, 1)).map((p) => [x, ...p])));
const depth = (o) => (o && typeof o === "object" ? 1 + Math.max(0, ...Object.values(o).map(depth)) : 0);
return [fib(80), perms([1, 2, 3]).map((p) => p.join("")), depth({ a: { b: [{ c: 1 }] } }), (function f(n) { return n ? n * f(n - 1) : 1; })(10)];
