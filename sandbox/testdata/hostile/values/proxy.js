// expect: result {"a":"a"}
return new Proxy({ a: 1 }, { get: (t, k) => k });
