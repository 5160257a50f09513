// returns: {"list":[9,25,49],"flat":[1,-1,2,-2],"reduce":6,"some":true,"every":false,"find":6,"from":[0,1,2],"each":["a1"]}
function* naturals() { let n = 1; while (true) yield n++; }
const it = naturals().filter((n) => n % 2).map((n) => n * n).drop(1).take(3);
return {
  list: it.toArray(),
  flat: [1, 2].values().flatMap((n) => [n, -n]).toArray(),
  reduce: new Set([1, 2, 3]).values().reduce((a, b) => a + b),
  some: [1, 2].values().some((n) => n > 1), every: [1, 2].values().every((n) => n > 1), find: naturals().find((n) => n > 5),
  from: Iterator.from({ next() { return { done: this.n > 2, value: this.n++ }; }, n: 0 }).toArray(),
  each: (() => { const s = []; new Map([["a", 1]]).entries().forEach(([k, v]) => s.push(k + v)); return s; })(),
};
