// returns: [{"order":12,"who":"Bob","total":3001},{"order":10,"who":"Ann","total":19},{"order":11,"who":"unknown","total":0}]
const [users, orders] = await Promise.all([codemode.crm__users({}), codemode.shop__orders({ status: "open" })]).then((rs) => rs.map(json));
const byId = new Map(users.map((u) => [u.id, u]));
return orders.map((o) => ({ order: o.id, who: byId.get(o.user)?.name ?? "unknown", total: o.lines.reduce((s, l) => s + l.price * l.qty, 0) })).sort((a, b) => b.total - a.total);
