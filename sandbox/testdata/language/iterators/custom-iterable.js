// returns: [[0,3,6,9],9,[0,6,12,18],0,6,[9],4,{"0":0,"3":9,"6":36,"9":81}]
class Range {
  constructor(a, b, step = 1) { Object.assign(this, { a, b, step }); }
  *[Symbol.iterator]() { for (let i = this.a; i < this.b; i += this.step) yield i; }
}
const r = new Range(0, 10, 3);
const [x, , z = "default", ...more] = r;
return [[...r], Math.max(...r), Array.from(r, (n) => n * 2), x, z, more, new Set(r).size, Object.fromEntries([...r].map((n) => [n, n * n]))];
