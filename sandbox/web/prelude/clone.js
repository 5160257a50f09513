(function (define) {
  const refuse = (what) => {
    const e = new Error(what + " could not be cloned");
    e.name = "DataCloneError";
    throw e;
  };
  const errors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  define(globalThis, "structuredClone", function structuredClone(value) {
    const seen = new Map();
    const copy = (v) => {
      if (typeof v === "function") refuse("a function");
      if (typeof v === "symbol") refuse("a symbol");
      if (v === null || typeof v !== "object") return v;
      if (seen.has(v)) return seen.get(v);
      const keep = (c) => { seen.set(v, c); return c; };
      const tag = Object.prototype.toString.call(v);
      if (Array.isArray(v)) {
        const out = keep([]);
        out.length = v.length;
        for (const k of Object.keys(v)) out[k] = copy(v[k]);
        return out;
      }
      if (v instanceof Date) return keep(new Date(v.getTime()));
      if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
      if (v instanceof Map) {
        const out = keep(new Map());
        v.forEach((x, k) => out.set(copy(k), copy(x)));
        return out;
      }
      if (v instanceof Set) {
        const out = keep(new Set());
        v.forEach((x) => out.add(copy(x)));
        return out;
      }
      if (v instanceof ArrayBuffer) return keep(v.slice(0));
      if (v instanceof DataView) return keep(new DataView(copy(v.buffer), v.byteOffset, v.byteLength));
      if (ArrayBuffer.isView(v)) return keep(new v.constructor(copy(v.buffer), v.byteOffset, v.length));
      if (v instanceof Error) {
        const out = keep(new (errors[v.name] || Error)(v.message));
        if ("cause" in v) out.cause = copy(v.cause);
        out.stack = v.stack;
        return out;
      }
      if (v instanceof Promise) refuse("a promise");
      if (v instanceof WeakMap || v instanceof WeakSet) refuse("a weak collection");
      if (tag === "[object Number]" || tag === "[object String]" || tag === "[object Boolean]") return keep(Object(v.valueOf()));
      const out = keep({});
      for (const k of Object.keys(v)) out[k] = copy(v[k]);
      return out;
    };
    return copy(value);
  });
})
