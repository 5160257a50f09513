// expect: result {"a":1,"b":"hidden"}
return await codemode.echo__say(new Proxy({ a: 1 }, { ownKeys: () => ["a", "b"], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: (t, k) => (k === "b" ? "hidden" : t[k]) }));
