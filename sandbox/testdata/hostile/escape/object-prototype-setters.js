// expect: result [{"x":1},1]
const seen = [];
for (const k of ["name", "args", "number", "op", "error", "type", "message", "line", "reply", "call", "fields", "value"])
  Object.defineProperty(Object.prototype, k, {__proto__: null, set(v) { seen.push(k) }, get() { return "mine" }, configurable: true});
const r = await codemode.echo__say({x: 1});
return [r, seen.length];
