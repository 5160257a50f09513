// returns: [["en-US","1,234,567.891","50%","€1,234.50"],["en","1,234,567.891","50%","€1,234.50"],["","1,234,567.891","50%","€1,234.50"]]
const n = 1234567.891;
return ["en-US", "en", undefined].map((l) => [l ?? "", n.toLocaleString(l), (0.5).toLocaleString(l, { style: "percent" }), (1234.5).toLocaleString(l, { style: "currency", currency: "EUR" })]);
