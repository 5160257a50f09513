// returns: [["d1","c1","a1","b1","a2","b2"],"a2 b2 a1 b1 c1 d1",[1,10,2,9],[1,3,null,null],["B","C","a"],["a","B","C"]]
const rows = "d1 a2 c1 b2 a1 b1".split(" ").map((s, i) => ({ k: s[0], g: s[1], i }));
const byGroup = rows.slice().sort((a, b) => a.g.localeCompare(b.g)).map((r) => r.k + r.g);
const multi = rows.slice().sort((a, b) => b.g - a.g || (a.k < b.k ? -1 : 1)).map((r) => r.k + r.g).join(" ");
return [byGroup, multi, [10, 9, 1, 2].sort(), [undefined, 3, null, 1].sort(), ["B", "a", "C"].sort(), ["B", "a", "C"].sort((x, y) => x.localeCompare(y))];
