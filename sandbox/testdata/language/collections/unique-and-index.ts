// returns: [2,["x","y"],[["x",["a"]],["y",["a","b"]]],["a","b"]]
type Row = { id: string; tags: string[] };
const rows: Row[] = [{ id: "a", tags: ["x", "y"] }, { id: "b", tags: ["y"] }, { id: "a", tags: [] }];
const unique = [...new Map(rows.map((r) => [r.id, r])).values()];
const index = rows.reduce<Map<string, Set<string>>>((m, r) => { for (const t of r.tags) (m.get(t) ?? m.set(t, new Set()).get(t)!).add(r.id); return m; }, new Map());
return [unique.length, [...new Set(rows.flatMap((r) => r.tags))], [...index].map(([t, ids]) => [t, [...ids]]), rows.map((r) => r.id).filter((x, i, all) => all.indexOf(x) === i)];
