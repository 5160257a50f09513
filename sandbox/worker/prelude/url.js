(function (define) {
  define(URL, "canParse", function canParse(text, base) {
    try { base === undefined ? new URL(text) : new URL(text, base); return true; } catch { return false; }
  });
  define(URL, "parse", function parse(text, base) {
    try { return base === undefined ? new URL(text) : new URL(text, base); } catch { return null; }
  });
})
