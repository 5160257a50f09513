// returns: [[1,1,2],2,2,"2!",6]
class TTLCache<K, V> { #m = new Map<K, { v: V; at: number }>(); constructor(private ttl: number, private now = () => 0) {} get(k: K, make: () => V): V { const e = this.#m.get(k); if (e && this.now() - e.at < this.ttl) return e.v; const v = make(); this.#m.set(k, { v, at: this.now() }); return v; } }
let t = 0, made = 0;
const c = new TTLCache<string, number>(10, () => t);
const r = [c.get("a", () => ++made), c.get("a", () => ++made)]; t = 11; r.push(c.get("a", () => ++made));
const once = <A extends unknown[], R>(f: (...a: A) => R) => { let done = false, v: R; return (...a: A) => (done ? v : ((done = true), (v = f(...a)))); };
const o = once((x: number) => x * 2);
const pipe = (...fs: ((x: any) => any)[]) => (x: any) => fs.reduce((v, f) => f(v), x);
const curry = (f: any) => function g(...a: any[]): any { return a.length >= f.length ? f(...a) : (...b: any[]) => g(...a, ...b); };
return [r, o(1), o(5), pipe((x) => x + 1, String, (s) => s + "!")(1), curry((a: number, b: number, c: number) => a + b + c)(1)(2, 3)];
