// returns: [["1.2.3-beta","v1.2.3","1.9.9","1.10.0","2.0"],["file1.txt","File2.txt","file10.txt","file10a.txt"],["Z1","z2","z11"]]
const semver = (a, b) => { const p = (v) => v.replace(/^v/, "").split(/[-+]/)[0].split(".").map(Number); const [x, y] = [p(a), p(b)]; for (let i = 0; i < 3; i++) if ((x[i] ?? 0) !== (y[i] ?? 0)) return (x[i] ?? 0) - (y[i] ?? 0); return a.includes("-") === b.includes("-") ? a.localeCompare(b) : a.includes("-") ? -1 : 1; };
const coll = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
return [["1.10.0", "v1.2.3", "1.2.3-beta", "2.0", "1.9.9"].sort(semver), ["file10.txt", "File2.txt", "file1.txt", "file10a.txt"].sort(coll.compare), ["z11", "z2", "Z1"].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }))];
