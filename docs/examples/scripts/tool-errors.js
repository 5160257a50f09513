// A tool that fails throws a ToolError. Whoever catches it goes on with the rest.

const stock = {};
for (const sku of ["mug", "lamp", "desk"]) {
  try {
    stock[sku] = Number(await codemode.shop__get_stock({sku}));
  } catch (e) {
    if (!(e instanceof ToolError)) throw e;
    stock[sku] = e.message;
  }
}
return stock;

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/tool-errors.js
// {"mug":12,"lamp":"the warehouse of lamp is closed","desk":0}
