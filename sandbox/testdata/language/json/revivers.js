// returns: [2024,[2,3,{"n":4}],false,["0","1","b","a","c",""],["",5]]
const o = JSON.parse('{"when":"2024-01-02T00:00:00.000Z","list":[1,2,{"n":3}],"drop":1}', function (k, v) {
  if (k === "when") return new Date(v);
  if (k === "drop") return undefined;
  return typeof v === "number" ? v + 1 : v;
});
const keys = []; JSON.parse('{"a":{"b":[1,2]},"c":3}', (k, v) => (keys.push(k), v));
return [o.when.getUTCFullYear(), o.list, "drop" in o, keys, JSON.parse("5", (k, v) => [k, v])];
