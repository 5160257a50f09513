// returns: ["Widget      $1,299.50   19%    $1,546.41","Gadget          $5.00    7%        $5.35","Total 1,551.75"]
const items = [{ name: "Widget", price: 1299.5, tax: 0.19 }, { name: "Gadget", price: 5, tax: 0.07 }];
const usd = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const pct = new Intl.NumberFormat("en-US", { style: "percent" });
const rows = items.map((i) => [i.name.padEnd(8), usd.format(i.price).padStart(12), pct.format(i.tax).padStart(5), usd.format(i.price * (1 + i.tax)).padStart(12)].join(" "));
return [...rows, `Total ${items.reduce((s, i) => s + i.price * (1 + i.tax), 0).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`];
