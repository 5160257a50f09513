// returns: [["24.98","0.00"],"21",[1,2,3],9.99,true,{"1":1,"2":4,"3":9,"4":16}]
const orders = [{ id: 1, lines: [{ p: 9.99, q: 2 }, { p: 5, q: 1 }] }, { id: 2, lines: [] }];
const total = (o) => o.lines.reduce((s, l) => s + l.p * l.q, 0);
return [orders.map(total).map((n) => n.toFixed(2)), orders.reduceRight((s, o) => s + o.id, ""), [[1, 2], [3]].reduce((a, b) => a.concat(b)), Math.max(...orders.flatMap((o) => o.lines.map((l) => l.p))), orders.some((o) => !o.lines.length), [1, 2, 3, 4].reduce((m, n) => ({ ...m, [n]: n ** 2 }), {})];
