// returns: [[{"path":"a","from":1,"to":2},{"path":"b.c.1","from":2,"to":3},{"path":"b.d","from":4},{"path":"e","to":null}],true,"{\"a\":{\"c\":3,\"d\":2},\"b\":1}"]
const eq = (a: any, b: any): boolean => a === b || (!!a && !!b && typeof a === "object" && typeof b === "object" && Array.isArray(a) === Array.isArray(b) && Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((k) => eq(a[k], b[k])));
type Change = { path: string; from?: unknown; to?: unknown };
const diff = (a: any, b: any, path = ""): Change[] => [...new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})])].flatMap((k) => {
  const p = path ? `${path}.${k}` : k;
  return eq(a?.[k], b?.[k]) ? [] : a?.[k] && b?.[k] && typeof a[k] === "object" && typeof b[k] === "object" ? diff(a[k], b[k], p) : [{ path: p, from: a?.[k], to: b?.[k] }];
});
const stable = (v: any): string => JSON.stringify(v, (_, x) => (x && typeof x === "object" && !Array.isArray(x) ? Object.fromEntries(Object.entries(x).sort(([p], [q]) => (p < q ? -1 : 1))) : x));
return [diff({ a: 1, b: { c: [1, 2], d: 4 } }, { a: 2, b: { c: [1, 3] }, e: null }), eq([1, { a: [] }], [1, { a: [] }]), stable({ b: 1, a: { d: 2, c: 3 } })];
