// expect: limit cpu time
return new Proxy([1], { get: (t, k) => (k === "length" ? 2 ** 53 : 0) });
