(function (define) {
  const keysOf = (other) => {
    const it = other.keys();
    return { [Symbol.iterator]: () => it };
  };
  const add = (name, f) => define(Set.prototype, name, { [name](other) {
    if (other === null || typeof other !== "object" || typeof other.has !== "function" || typeof other.keys !== "function") {
      throw new TypeError("Set.prototype." + name + ": the argument must be a Set");
    }
    return f(this, other);
  } }[name]);
  add("union", (a, b) => { const s = new Set(a); for (const v of keysOf(b)) s.add(v); return s; });
  add("intersection", (a, b) => { const s = new Set(); for (const v of a) if (b.has(v)) s.add(v); return s; });
  add("difference", (a, b) => { const s = new Set(); for (const v of a) if (!b.has(v)) s.add(v); return s; });
  add("symmetricDifference", (a, b) => {
    const s = new Set(a);
    for (const v of keysOf(b)) { if (a.has(v)) s.delete(v); else s.add(v); }
    return s;
  });
  add("isSubsetOf", (a, b) => { for (const v of a) if (!b.has(v)) return false; return true; });
  add("isSupersetOf", (a, b) => { for (const v of keysOf(b)) if (!a.has(v)) return false; return true; });
  add("isDisjointFrom", (a, b) => { for (const v of a) if (b.has(v)) return false; return true; });
})
