// returns: [{"team":"red","orders":1,"revenue":"$19.00"},{"team":"none","orders":1,"revenue":"$0.00"},{"team":"blue","orders":1,"revenue":"$3,001.00"}]
type User = { id: number; name: string; team: string };
type Order = { id: number; user: number; status: string; lines: { price: number; qty: number }[] };
const users = json(await codemode.crm__users({})) as User[];
const orders = json(await codemode.shop__orders({ status: "open" })) as Order[];
const report = Object.entries(Object.groupBy(orders, (o: Order) => users.find((u) => u.id === o.user)?.team ?? "none")).map(([team, os]) => ({ team, orders: os!.length, revenue: os!.flatMap((o) => o.lines).reduce((s, l) => s + l.price * l.qty, 0).toLocaleString("en-US", { style: "currency", currency: "USD" }) }));
return report;
