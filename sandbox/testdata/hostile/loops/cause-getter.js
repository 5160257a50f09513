// expect: limit cpu time
throw Object.defineProperty(new Error("x"), "cause", { get() { for (;;); } });
