// expect: result []
return new Proxy([1], { get: (t, k) => (k === "length" ? { valueOf: () => -1 } : 0) });
