// returns: ["t",{"x":1,"y":2,"one":1},[2,1],[10,"id","asc",null,[]],[1,"id","desc","h",["t"]],"M",7,"v",3]
const { a: { b: [first] = [] } = {}, ...rest } = { a: { b: [1] }, x: 1, y: 2 };
const [, tail] = [first, "t"];
const swap = ([p, q]) => [q, p];
function opts({ limit = 10, sort: { by = "id", dir = "asc" } = {} } = {}, ...rest2) { const [head, ...tail] = rest2; return [limit, by, dir, head, tail]; }
let m, n; [m, n] = [1, 2]; [m, n] = [n, m]; ({ m, n = 7 } = { m: "M" });
const key = "dyn"; const { [key]: dyn, length = 3 } = { dyn: "v" };
for (const [k, { v }] of Object.entries({ one: { v: 1 } })) rest[k] = v;
return [tail, rest, swap([1, 2]), opts(), opts({ limit: 1, sort: { dir: "desc" } }, "h", "t"), m, n, dyn, length];
