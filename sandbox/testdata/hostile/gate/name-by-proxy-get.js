// expect: result {"a":1}
const names = new Proxy({}, {get: (t, k) => k === Symbol.toPrimitive ? () => (names.n = (names.n || 0) + 1, names.n > 1 ? "echo__denied" : "echo__say") : t[k], set: (t, k, v) => (t[k] = v, true)});
try { return await codemode[names]({a: 1}) } catch (e) { return e.name }
