// returns: "| name | stars | license |\n|:---|---:|:---|\n| alpha | 1200 | — |\n| b\\|c | 7 | MIT |\n\n1. **alpha** (1,200)\n2. **b|c** (7)"
const rows = [{ name: "alpha", stars: 1200, license: null }, { name: "b|c", stars: 7, license: "MIT" }];
const cols = Object.keys(rows[0]) as (keyof (typeof rows)[number])[];
const esc = (v: unknown) => String(v ?? "—").replace(/\|/g, "\\|");
const md = [`| ${cols.join(" | ")} |`, `|${cols.map((c) => (typeof rows[0][c] === "number" ? "---:" : ":---")).join("|")}|`, ...rows.map((r) => `| ${cols.map((c) => esc(r[c])).join(" | ")} |`)].join("\n");
const list = rows.map((r, i) => `${i + 1}. **${r.name}** (${r.stars.toLocaleString("en-US")})`).join("\n");
return md + "\n\n" + list;
