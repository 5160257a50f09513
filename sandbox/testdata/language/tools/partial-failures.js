// returns: ["a.txt: alpha","missing.txt: ToolError no such file: missing.txt","b.txt: beta"]
const names = ["a.txt", "missing.txt", "b.txt"];
const rs = await Promise.allSettled(names.map((path) => codemode.fs__read_file({ path })));
return rs.map((r, i) => (r.status === "fulfilled" ? `${names[i]}: ${r.value.trim()}` : `${names[i]}: ${r.reason.name} ${r.reason.message}`));
