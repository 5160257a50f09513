// Finding a tool inside the script costs no extra turn. Never guess names or
// arguments: return the declarations, and call in the next script.

const found = await codemode.search_tools({query: "pay money back", server: "shop", limit: 1});
return found[0].declaration;

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/discover.js
// "codemode.shop__refund_order(args: {id: string; cents: number; reason?: string}): Promise<string>"
