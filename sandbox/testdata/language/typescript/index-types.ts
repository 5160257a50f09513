// returns: [["the",3],["and",2],["bat",1]]
type Counts<K extends string = string> = { [P in K]?: number };
const words = "the cat and the hat and the bat".split(" ");
const counts: Counts = {};
for (const w of words) counts[w] = (counts[w] ?? 0) + 1;
const sorted = (Object.entries(counts) as [string, number][]).sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
return sorted.slice(0, 3);
