// Two servers and types: a CSV list of prices, read by `utils`, against what the
// shop's customers paid. Types are stripped, not checked.

type Price = {sku: string; cents: string};
const list = "sku,cents\nmug,1400\nlamp,7900\ndesk,41900\n";

const {rows} = await codemode.utils__csv_parse({text: list}) as {rows: Price[]};
const price = new Map(rows.map(p => [p.sku, Number(p.cents)]));
const {orders} = json(await codemode.shop__list_orders({status: "open"}));
return orders.filter(o => o.cents !== price.get(o.sku)).map(o => ({id: o.id, paid: o.cents, price: price.get(o.sku)}));

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/join.ts
// [{"id":"1002","paid":8900,"price":7900}]
