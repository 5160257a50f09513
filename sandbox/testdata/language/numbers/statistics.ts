// returns: {"mean":18,"median":15.5,"sd":12.32,"p90":32.5,"hist":{"0":2,"10":2,"20":1,"40":1}}
const xs = [4, 8, 15, 16, 23, 42];
const sum = xs.reduce((a, b) => a + b, 0), mean = sum / xs.length;
const median = (v: number[]) => { const s = [...v].sort((a, b) => a - b), m = s.length >> 1; return s.length % 2 ? s[m] : (s[m - 1] + s[m]) / 2; };
const sd = Math.sqrt(xs.reduce((a, x) => a + (x - mean) ** 2, 0) / xs.length);
const quantile = (q: number) => { const p = (xs.length - 1) * q, b = Math.floor(p); return xs[b] + (xs[b + 1] - xs[b] || 0) * (p - b); };
const round = (n: number, d = 2) => Math.round((n + Number.EPSILON) * 10 ** d) / 10 ** d;
return { mean, median: median(xs), sd: round(sd), p90: quantile(0.9), hist: xs.reduce<Record<string, number>>((h, x) => ({ ...h, [Math.floor(x / 10) * 10]: (h[Math.floor(x / 10) * 10] ?? 0) + 1 }), {}) };
