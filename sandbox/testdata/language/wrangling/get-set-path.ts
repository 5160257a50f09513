// returns: [5,"none",{"p":{"q":{"r":1}}},{"a.b.0":1,"a.b.1.c":2,"d":null},{"a":1}]
const get = (o: any, path: string, d?: unknown) => path.replace(/\[(\w+)\]/g, ".$1").split(".").reduce((x, k) => (x == null ? undefined : x[k]), o) ?? d;
const set = (o: any, path: string, v: unknown) => { const ks = path.split("."); const last = ks.pop()!; ks.reduce((x, k) => (x[k] ??= {}), o)[last] = v; return o; };
const flatten = (o: object, at = ""): Record<string, unknown> => Object.entries(o).reduce((m, [k, v]) => ({ ...m, ...(v && typeof v === "object" ? flatten(v, `${at}${k}.`) : { [at + k]: v }) }), {});
const pick = <T extends object, K extends keyof T>(o: T, ...ks: K[]) => Object.fromEntries(ks.filter((k) => k in o).map((k) => [k, o[k]])) as Pick<T, K>;
return [get({ a: [{ b: 5 }] }, "a[0].b"), get({}, "x.y", "none"), set({}, "p.q.r", 1), flatten({ a: { b: [1, { c: 2 }] }, d: null }), pick({ a: 1, b: 2 }, "a")];
