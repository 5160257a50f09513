// returns: [[{"id":"1","name":"Ann"},{"id":"2","name":"Bob"}],"string",3,{"already":"object"},[1,2]]
const t = await codemode.fs__read_file({ path: "data.csv" });
const [head, ...rows] = t.trim().split("\n").map((l) => l.split(","));
const list = rows.map((r) => Object.fromEntries(head.map((h, i) => [h, r[i]])));
const same = json(await codemode.crm__users({}));
return [list, typeof t, same.length, json({ already: "object" }), json("[1,2]")];
