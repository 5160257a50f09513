(function (define) {
  // The library's own href forgets what searchParams changed.
  const href = Object.getOwnPropertyDescriptor(URL.prototype, "href");
  Object.defineProperty(URL.prototype, "href", { get() { return this.toString(); }, set: href.set, enumerable: true, configurable: true });
  define(URL, "canParse", function canParse(text, base) {
    try { base === undefined ? new URL(text) : new URL(text, base); return true; } catch { return false; }
  });
  define(URL, "parse", function parse(text, base) {
    try { return base === undefined ? new URL(text) : new URL(text, base); } catch { return null; }
  });
})
