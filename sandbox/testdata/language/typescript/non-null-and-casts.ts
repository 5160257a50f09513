// returns: 5
const input2 = { list: [{ id: "1", n: "5" }] } as unknown as { list: Array<{ id: string; n: string }> };
const m = new Map<string, { total: number }>();
for (const { id, n } of input2.list) m.set(id, { total: Number(n) });
const any: any = m.get("1")!;
return (any as { total: number }).total + (m.get("2")?.total ?? 0);
