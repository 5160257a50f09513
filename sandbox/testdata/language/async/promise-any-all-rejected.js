// returns: ["AggregateError",true,["a","b"]]
try { await Promise.any([Promise.reject(new Error("a")), Promise.reject(new Error("b"))]); }
catch (e) { return [e.name, e instanceof AggregateError, e.errors.map((x) => x.message)]; }
