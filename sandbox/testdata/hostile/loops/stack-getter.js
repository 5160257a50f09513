// expect: limit cpu time
throw Object.defineProperty(new Error("x"), "stack", { get() { for (;;); } });
