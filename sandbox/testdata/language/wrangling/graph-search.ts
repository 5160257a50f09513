// returns: [["core","lib","css","ui","app"],["app","lib","core"],null,"cycle at app"]
const deps: Record<string, string[]> = { app: ["lib", "ui"], ui: ["lib", "css"], lib: ["core"], css: [], core: [] };
const topo = () => { const out: string[] = [], seen = new Map<string, 1 | 2>(); const visit = (n: string) => { if (seen.get(n) === 2) return; if (seen.get(n) === 1) throw new Error("cycle at " + n); seen.set(n, 1); deps[n].forEach(visit); seen.set(n, 2); out.push(n); }; Object.keys(deps).forEach(visit); return out; };
const bfs = (from: string, to: string) => { const queue: string[][] = [[from]], seen = new Set([from]); while (queue.length) { const path = queue.shift()!; const last = path.at(-1)!; if (last === to) return path; for (const n of deps[last]) if (!seen.has(n)) { seen.add(n); queue.push([...path, n]); } } return null; };
const order = topo(); deps.core.push("app"); let cycle; try { topo(); } catch (e) { cycle = (e as Error).message; }
return [order, bfs("app", "core"), bfs("css", "app"), cycle];
