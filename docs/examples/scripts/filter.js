// Much in, little out: the orders stay in the script, and only what it returns
// enters the model's conversation. The shop answers with text that is JSON, so
// json() reads it.

const {orders} = json(await codemode.shop__list_orders({status: "open"}));
return orders.filter(o => o.cents > 5000).map(o => `${o.id} ${o.sku}`);

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/filter.js
// ["1002 lamp","1006 desk"]
