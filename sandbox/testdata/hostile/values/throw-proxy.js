// expect: error Error: the script threw a value that throws when it is looked at
throw new Proxy(new Error("x"), { get() { throw new Error("no"); } });
