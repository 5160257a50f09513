// returns: {"quarters":["q1","q2","q3"],"table":[{"region":"north","q1":10,"q2":20,"q3":0},{"region":"south","q1":5,"q2":0,"q3":7}],"totals":[15,20,7]}
const sales = [["north", "q1", 10], ["north", "q2", 20], ["south", "q1", 5], ["south", "q3", 7]].map(([region, quarter, amount]) => ({ region, quarter, amount }));
const quarters = [...new Set(sales.map((s) => s.quarter))].sort();
const table = Object.values(sales.reduce((m, { region, quarter, amount }) => { (m[region] ??= { region, ...Object.fromEntries(quarters.map((q) => [q, 0])) })[quarter] += amount; return m; }, {}));
const totals = quarters.map((q) => table.reduce((s, r) => s + r[q], 0));
return { quarters, table, totals };
