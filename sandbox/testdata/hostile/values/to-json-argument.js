// expect: result {"key":"key","list":["0"]}
return { key: { toJSON: (k) => k }, list: [{ toJSON: (k) => k }] };
