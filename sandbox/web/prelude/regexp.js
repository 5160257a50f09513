// What goja's regular expressions lack: the flags d and v, and \p{...} by all
// its names. translate rewrites a pattern so that the engine reads it as the
// language says; indices returns where the groups of a match begin and end.
(function (define, translate, indices, written) {
  const Plain = globalThis.RegExp, proto = Plain.prototype;
  const getter = (name) => Object.getOwnPropertyDescriptor(proto, name).get;
  const plainSource = getter("source"), plainFlags = getter("flags"), plainExec = proto.exec;
  const flagsOf = new WeakMap(); // of those whose flags the engine does not know

  function RegExp(pattern, flags) {
    const regexp = pattern instanceof Plain;
    if (regexp && !new.target && flags === undefined) return pattern;
    const source = regexp ? pattern.source : pattern === undefined ? "" : String(pattern);
    const f = flags === undefined ? (regexp ? pattern.flags : "") : String(flags);
    if (/[^dgimsuvy]|(.).*\1|u.*v|v.*u/.test(f)) throw new SyntaxError("Invalid flags supplied to RegExp constructor '" + f + "'");
    const text = translate(source, f);
    const plain = f.replace("d", "").replace("v", "u");
    const re = Reflect.construct(Plain, [text, plain], new.target || RegExp);
    if (plain !== f) flagsOf.set(re, [..."dgimsuvy"].filter((c) => f.includes(c)).join(""));
    if (f.includes("d")) {
      Object.defineProperty(re, "exec", {
        value: function exec(input) {
          const s = String(input), m = plainExec.call(this, s);
          if (m) m.indices = indices(text, plain, s, m.index);
          return m;
        }, writable: true, configurable: true,
      });
    }
    return re;
  }
  Object.defineProperty(RegExp, "prototype", { value: proto, writable: false });
  Object.defineProperty(RegExp, "length", { value: 2, configurable: true });
  Object.defineProperty(RegExp, Symbol.species, { get() { return this; }, configurable: true });
  for (const name of ["escape"]) if (Plain[name]) define(RegExp, name, Plain[name]);
  Object.defineProperty(proto, "constructor", { value: RegExp, writable: true, configurable: true });
  const get = (name, f) => Object.defineProperty(proto, name, { get: f, configurable: true });
  get("source", function () {
    const s = plainSource.call(this);
    return this === proto ? s : written(s) ?? s.replace(/\\u002f/g, "\\/");
  });
  get("flags", function () { return flagsOf.get(this) ?? plainFlags.call(this); });
  get("hasIndices", function () { return this === proto ? undefined : this.flags.includes("d"); });
  get("unicodeSets", function () { return this === proto ? undefined : this.flags.includes("v"); });
  const unicode = getter("unicode");
  get("unicode", function () { return unicode.call(this) && !(flagsOf.get(this) ?? "").includes("v"); });
  Object.defineProperty(proto, "toString", { value: function toString() { return "/" + this.source + "/" + this.flags; }, writable: true, configurable: true });
  Object.defineProperty(globalThis, "RegExp", { value: RegExp, writable: true, configurable: true });
})
