// A tool that answers page by page: go on as long as there is a next one.

const all = [];
for (let cursor; ;) {
  const page = json(await codemode.shop__list_orders(cursor ? {cursor} : {}));
  all.push(...page.orders);
  console.log("page with", page.orders.length);
  cursor = page.next;
  if (!cursor) break;
}
return Object.fromEntries(Object.entries(Object.groupBy(all, o => o.status)).map(([status, list]) => [status, list.length]));

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/paging.js
// page with 3
// page with 3
// page with 1
// {"shipped":3,"open":3,"refunded":1}
