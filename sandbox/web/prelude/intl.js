// Intl, over package intl. The toLocale family is Go: locale.go.
(function (define, make, known, zones) {
  const state = new WeakMap();
  const put = (o, name, f) => Object.defineProperty(o, name, { value: f, writable: true, enumerable: false, configurable: true });
  const of = (self, name) => {
    const f = state.get(self);
    if (!f) throw new TypeError("Method Intl." + name + " called on incompatible receiver " + String(self));
    return f;
  };
  const list = (locales) => (locales === undefined ? [] : typeof locales === "string" ? [locales] : Array.from(locales, String));

  // build makes a class of Intl: maker's functions under the names of methods,
  // bound to the object where the language binds them.
  const build = (name, maker, { bound = {}, methods = {}, more = [], callable = false }) => {
    const C = { [name]: function (locales, options) {
      if (!new.target && !callable) throw new TypeError("Constructor Intl." + name + " requires 'new'");
      const self = new.target ? this : Object.create(C.prototype);
      state.set(self, make[maker](locales, options, "Intl." + name, ...more));
      return self;
    } }[name];
    for (const [key, own] of Object.entries(bound)) {
      const kept = new WeakMap();
      Object.defineProperty(C.prototype, key, { get() {
        const f = of(this, name);
        if (!kept.has(this)) kept.set(this, own(f));
        return kept.get(this);
      }, configurable: true });
    }
    for (const [key, own] of Object.entries(methods)) put(C.prototype, key, { [key](...args) { return own(of(this, name), ...args); } }[key]);
    put(C.prototype, "resolvedOptions", function resolvedOptions() { return of(this, name).resolved(); });
    put(C, "supportedLocalesOf", function supportedLocalesOf(locales) { return list(locales).map(known).filter((l) => l !== undefined); });
    Object.defineProperty(C.prototype, Symbol.toStringTag, { value: "Intl." + name, configurable: true });
    return C;
  };
  const absent = (what, instead) => function () { throw new RangeError(what + " does not exist here: " + instead); };
  const range = absent("formatRange", "format both ends and join them with \" – \"");
  const time = (d) => (d === undefined ? Date.now() : Number(d));
  const Intl = {
    NumberFormat: build("NumberFormat", "number", {
      bound: { format: (f) => (n) => f.format(n) },
      methods: { formatToParts: (f, n) => f.parts(n), formatRange: range, formatRangeToParts: range }, callable: true,
    }),
    DateTimeFormat: build("DateTimeFormat", "date", {
      bound: { format: (f) => (d) => f.format(time(d)) },
      methods: { formatToParts: (f, d) => f.parts(time(d)), formatRange: range, formatRangeToParts: range }, more: ["any", "date"], callable: true,
    }),
    Collator: build("Collator", "collator", { bound: { compare: (f) => (a, b) => f.compare(String(a), String(b)) }, callable: true }),
    PluralRules: build("PluralRules", "plural", { methods: { select: (f, n) => f.select(Number(n)) } }),
    ListFormat: build("ListFormat", "list", { methods: {
      format: (f, items) => f.format([...items]),
      formatToParts: (f, items) => f.parts([...items]),
    } }),
    RelativeTimeFormat: build("RelativeTimeFormat", "relative", { methods: {
      format: (f, n, unit) => f.format(Number(n), String(unit)),
      formatToParts: (f, n, unit) => f.parts(Number(n), String(unit)),
    } }),
    Segmenter: build("Segmenter", "segmenter", { methods: { segment: (f, text) => {
      const all = f.segment(String(text));
      return {
        [Symbol.iterator]: () => all.values(),
        containing: (at = 0) => all.findLast((s) => s.index <= at && at < s.index + s.segment.length),
      };
    } } }),
    getCanonicalLocales: (locales) => list(locales).map((l) => known(l) ?? l),
    supportedValuesOf: (key) => {
      if (key === "timeZone") return zones();
      throw new RangeError("Intl.supportedValuesOf: \"" + key + "\" is not known here: \"timeZone\" is");
    },
  };
  for (const [name, instead] of [["DisplayNames", "write the names out"], ["DurationFormat", "put the parts together with Intl.NumberFormat and style: \"unit\""], ["Locale", "take the text apart at its hyphens"]]) {
    Intl[name] = absent("Intl." + name, instead);
  }
  Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });
  define(globalThis, "Intl", Object.freeze(Intl));
})
