// returns: [{"email":"a@x.org","name":"Ann","tags":["vip","new"],"updated":"2024-03-01"},{"email":"b@x.org","updated":"2024-02-01","tags":[]},{"email":"c@x.org","name":"Cy","updated":"2023-01-01","tags":[]}]
type Contact = { email: string; name?: string; tags?: string[]; updated: string };
const a: Contact[] = [{ email: "A@x.org", name: "Ann", tags: ["vip"], updated: "2024-01-01" }, { email: "b@x.org", updated: "2024-02-01" }];
const b: Contact[] = [{ email: "a@x.org ", tags: ["new", "vip"], updated: "2024-03-01" }, { email: "c@x.org", name: "Cy", updated: "2023-01-01" }];
const key = (c: Contact) => c.email.trim().toLowerCase();
const merged = [...a, ...b].reduce((m, c) => { const old = m.get(key(c)); return m.set(key(c), { ...old, ...c, email: key(c), name: c.name ?? old?.name, tags: [...new Set([...(old?.tags ?? []), ...(c.tags ?? [])])] }); }, new Map<string, Contact>());
return [...merged.values()].sort((x, y) => y.updated.localeCompare(x.updated));
