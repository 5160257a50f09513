// returns: ["a,b,c\r\n1,\"say \"\"hi\"\"\",\r\n\"x,y\",,\"line\nbreak\"",[["a","b","c"],["1","say \"hi\"",""],["x,y","","line\nbreak"]]]
const parse = (t) => { const rows = []; let row = [], cell = "", q = false; for (let i = 0; i < t.length; i++) { const c = t[i]; if (q) { if (c === '"' && t[i + 1] === '"') { cell += '"'; i++; } else if (c === '"') q = false; else cell += c; } else if (c === '"') q = true; else if (c === ",") { row.push(cell); cell = ""; } else if (c === "\n") { row.push(cell); rows.push(row); row = []; cell = ""; } else if (c !== "\r") cell += c; } if (cell || row.length) { row.push(cell); rows.push(row); } return rows; };
const quote = (v) => { const s = v == null ? "" : String(v); return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s; };
const toCSV = (rows) => { const cols = [...new Set(rows.flatMap(Object.keys))]; return [cols.join(","), ...rows.map((r) => cols.map((c) => quote(r[c])).join(","))].join("\r\n"); };
const text = toCSV([{ a: 1, b: 'say "hi"' }, { a: "x,y", c: "line\nbreak" }]);
return [text, parse(text)];
