// expect: result {}
return new Proxy(new Error("x"), { get: (t, k) => "p" });
