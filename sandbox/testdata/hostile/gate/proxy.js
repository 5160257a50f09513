// expect: result {"path":"read 1"}
let n = 0;
return await codemode.echo__say(new Proxy({ path: "x" }, { get: (t, k) => (k === "path" ? "read " + ++n : undefined) }));
