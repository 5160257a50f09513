// returns: ["root\n  b\n  c\n    d",["/root/b","/root/c/d"]]
type Flat = { id: number; parent: number | null; name: string };
type Node = Flat & { children: Node[] };
const flat: Flat[] = [{ id: 3, parent: 1, name: "c" }, { id: 1, parent: null, name: "root" }, { id: 2, parent: 1, name: "b" }, { id: 4, parent: 3, name: "d" }];
const nodes = new Map<number, Node>(flat.map((f) => [f.id, { ...f, children: [] }]));
const roots: Node[] = [];
for (const n of nodes.values()) (n.parent === null ? roots : nodes.get(n.parent)!.children).push(n);
const draw = (n: Node, depth = 0): string[] => ["  ".repeat(depth) + n.name, ...n.children.sort((a, b) => a.id - b.id).flatMap((c) => draw(c, depth + 1))];
const paths = (n: Node, at = ""): string[] => { const p = `${at}/${n.name}`; return n.children.length ? n.children.flatMap((c) => paths(c, p)) : [p]; };
return [roots.flatMap((r) => draw(r)).join("\n"), roots.flatMap((r) => paths(r))];
