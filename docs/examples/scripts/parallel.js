// Calls that do not need each other's answers are made at the same time.

const ids = ["1002", "1004", "1006"];
const orders = await Promise.all(ids.map(id => codemode.shop__get_order({id})));
return orders.reduce((sum, o) => sum + o.cents, 0) / 100;

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/parallel.js
// 927
