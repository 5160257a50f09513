// expect: limit cpu time
throw Object.defineProperty(new Error("x"), "message", { get() { for (;;); } });
