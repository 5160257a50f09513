// The whole answer, as MCP has it: every content block, and whether the tool
// failed. Nothing throws here.

const answers = await Promise.all(["mug", "lamp"].map(sku => codemode.raw("shop__get_stock", {sku})));
return answers.map(a => [a.isError ?? false, a.content[0].text]);

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/raw.js
// [[false,"12"],[true,"the warehouse of lamp is closed"]]
