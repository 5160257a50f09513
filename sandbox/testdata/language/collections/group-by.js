// returns: [[["fruit",["apple","fig"]],["veg",["kale"]]],2,[true,false],null]
const items = [{ t: "fruit", n: "apple", q: 3 }, { t: "veg", n: "kale", q: 0 }, { t: "fruit", n: "fig", q: 7 }];
const g = Object.groupBy(items, (i) => i.t);
const m = Map.groupBy(items, (i) => i.q > 0);
return [Object.entries(g).map(([k, v]) => [k, v.map((i) => i.n)]), m.get(true).length, [...m.keys()], Object.getPrototypeOf(g)];
