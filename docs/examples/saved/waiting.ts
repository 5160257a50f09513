// description: Open orders that were placed before a day, the oldest first.
// input: {"type": "object", "required": ["before"], "properties": {
//   "before": {"type": "string", "description": "a day, such as 2026-03-10"}}}
// output: {"type": "array", "items": {"type": "object"}}
const {orders} = json(await codemode.shop__list_orders({status: "open"}));
return orders.filter(o => o.placed < input.before);

// $ codemode-bridge eval -c docs/examples/config.json --script waiting --input '{"before": "2026-03-05"}'
// [{"id":"1002","customer":"bob","status":"open","placed":"2026-03-03","sku":"lamp","cents":8900}]
// $ codemode-bridge eval -c docs/examples/config.json --script waiting --input '{"before": 5}'
// ArgumentError: run("waiting") was not sent: args.before must be string, got number. Declaration: codemode.run("waiting", input: {before: string}): Promise<Record<string, unknown>[]> (line 1, column 14)
// > 1 | return await codemode.run("waiting", input)
//     |              ^
// Effects: calls: 1 refused. Safe to run again once the call that was refused is corrected. Run r4pwo6.
// [exit code 1]
