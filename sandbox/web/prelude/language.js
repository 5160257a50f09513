// What newer editions of the language added and goja lacks.
(function (define) {
  // The front end writes for await and async generators with this symbol.
  define(Symbol, "asyncIterator", Symbol.for("Symbol.asyncIterator"));
  define(Symbol, "dispose", Symbol.for("Symbol.dispose"));
  define(Symbol, "asyncDispose", Symbol.for("Symbol.asyncDispose"));

  define(Promise, "withResolvers", function withResolvers() {
    let resolve, reject;
    const promise = new this((yes, no) => { resolve = yes; reject = no; });
    return { promise, resolve, reject };
  });
  define(Promise, "try", function (callback, ...args) {
    return new this((resolve) => resolve(callback(...args)));
  });

  define(Array, "fromAsync", async function fromAsync(items, map) {
    const out = [];
    let i = 0;
    const add = async (v) => { out.push(map ? await map(await v, i) : await v); i++; };
    const open = items[Symbol.asyncIterator] || items[Symbol.iterator];
    if (open) {
      const it = open.call(items);
      for (let step = await it.next(); !step.done; step = await it.next()) await add(step.value);
    } else {
      for (let n = 0; n < items.length; n++) await add(items[n]);
    }
    return out;
  });

  define(Object, "groupBy", function groupBy(items, key) {
    const out = Object.create(null);
    let i = 0;
    for (const v of items) {
      const k = key(v, i++);
      const name = typeof k === "symbol" ? k : String(k);
      if (name in out) out[name].push(v);
      else out[name] = [v];
    }
    return out;
  });
  define(Map, "groupBy", function groupBy(items, key) {
    const out = new Map();
    let i = 0;
    for (const v of items) {
      const k = key(v, i++);
      const list = out.get(k);
      if (list) list.push(v);
      else out.set(k, [v]);
    }
    return out;
  });
  define(Map.prototype, "getOrInsert", function getOrInsert(key, value) {
    if (!this.has(key)) this.set(key, value);
    return this.get(key);
  });
  define(Map.prototype, "getOrInsertComputed", function getOrInsertComputed(key, make) {
    if (!this.has(key)) this.set(key, make(key));
    return this.get(key);
  });

  define(String.prototype, "isWellFormed", function isWellFormed() {
    return this.toWellFormed() === String(this);
  });
  define(String.prototype, "toWellFormed", function toWellFormed() {
    const s = String(this);
    let out = "";
    for (let i = 0; i < s.length; i++) {
      const c = s.charCodeAt(i);
      if (c >= 0xd800 && c < 0xdc00 && i + 1 < s.length && s.charCodeAt(i + 1) >= 0xdc00 && s.charCodeAt(i + 1) < 0xe000) {
        out += s[i] + s[i + 1];
        i++;
      } else {
        out += c >= 0xd800 && c < 0xe000 ? "\ufffd" : s[i];
      }
    }
    return out;
  });
  const hex = (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0");
  const named = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\f": "\\f" };
  define(RegExp, "escape", function escape(text) {
    if (typeof text !== "string") throw new TypeError("RegExp.escape: the argument must be a string");
    return text.replace(/^[0-9A-Za-z]|[\\^$.*+?()[\]{}|\/,\-=<>#&!%:;@~'`"\s]/g, (c) => (
      /[0-9A-Za-z]/.test(c) ? hex(c) : /[\\^$.*+?()[\]{}|\/]/.test(c) ? "\\" + c : named[c] ?? (c > "\xff" ? "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0") : hex(c))));
  });
  define(Error, "isError", function isError(v) {
    return Object.prototype.toString.call(v) === "[object Error]" || v instanceof Error;
  });
})
