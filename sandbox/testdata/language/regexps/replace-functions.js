// returns: ["Hi ANN, {{missing}} 0","4,0,9,5","vk","a[undefined]c"]
const tpl = (t, v) => t.replace(/\{\{\s*([\w.]+)\s*(?:\|\s*(\w+))?\s*\}\}/g, (all, path, f) => { const x = path.split(".").reduce((o, k) => o?.[k], v); return x === undefined ? all : f === "upper" ? String(x).toUpperCase() : x; });
const r = "2020-2024".replace(/(\d+)-(\d+)/, (...a) => { const [whole, x, y, off, s] = a; return [y - x, off, s.length, a.length].join(); });
const named = "k=v".replace(/(?<k>\w)=(?<v>\w)/, (...a) => { const g = a.at(-1); return g.v + g.k; });
return [tpl("Hi {{ user.name | upper }}, {{missing}} {{n}}", { user: { name: "ann" }, n: 0 }), r, named, "abc".replace(/(z)?b/, (m, z) => `[${z}]`)];
