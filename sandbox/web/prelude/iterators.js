// Iterator helpers, on the prototype that all built-in iterators share.
(function (define) {
  const proto = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
  const callable = (f, name) => {
    if (typeof f !== "function") throw new TypeError("Iterator." + name + ": the argument must be a function");
  };
  const count = (n, name) => {
    n = Math.trunc(Number(n));
    if (!(n >= 0)) throw new RangeError("Iterator." + name + ": the argument must be a number of at least 0");
    return n;
  };
  const each = (it) => ({ [Symbol.iterator]: () => ({ next: () => it.next(), return: (v) => (it.return ? it.return(v) : { done: true, value: v }) }) });
  const lazy = {
    *map(it, f) { let i = 0; for (const v of each(it)) yield f(v, i++); },
    *filter(it, f) { let i = 0; for (const v of each(it)) if (f(v, i++)) yield v; },
    *take(it, n) { if (n === 0) { if (it.return) it.return(); return; } for (const v of each(it)) { yield v; if (--n <= 0) return; } },
    *drop(it, n) { for (const v of each(it)) { if (n > 0) n--; else yield v; } },
    *flatMap(it, f) { let i = 0; for (const v of each(it)) yield* f(v, i++); },
  };
  for (const name of ["map", "filter", "flatMap"]) {
    define(proto, name, { [name](f) { callable(f, name); return lazy[name](this, f); } }[name]);
  }
  for (const name of ["take", "drop"]) {
    define(proto, name, { [name](n) { return lazy[name](this, count(n, name)); } }[name]);
  }
  const eager = {
    reduce(f, ...initial) {
      callable(f, "reduce");
      let acc = initial[0], begun = initial.length > 0, i = 0;
      for (const v of each(this)) {
        acc = begun ? f(acc, v, i) : v;
        begun = true;
        i++;
      }
      if (!begun) throw new TypeError("Iterator.reduce: an empty iterator has no first value");
      return acc;
    },
    toArray() { return [...each(this)]; },
    forEach(f) { callable(f, "forEach"); let i = 0; for (const v of each(this)) f(v, i++); },
    some(f) { callable(f, "some"); let i = 0; for (const v of each(this)) if (f(v, i++)) return true; return false; },
    every(f) { callable(f, "every"); let i = 0; for (const v of each(this)) if (!f(v, i++)) return false; return true; },
    find(f) { callable(f, "find"); let i = 0; for (const v of each(this)) if (f(v, i++)) return v; },
  };
  for (const name of Object.keys(eager)) define(proto, name, eager[name]);
  function Iterator() { throw new TypeError("Iterator is abstract: extend it"); }
  Object.defineProperty(Iterator, "prototype", { value: proto });
  Iterator.from = function from(items) {
    const it = typeof items[Symbol.iterator] === "function" ? items[Symbol.iterator]() : items;
    return proto.isPrototypeOf(it) ? it : (function* () { yield* each(it); })();
  };
  define(globalThis, "Iterator", Iterator);
})
