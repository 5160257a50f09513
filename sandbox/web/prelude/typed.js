// In from of typed arrays goja finds the iterator of objects only, not of strings.
(function (define) {
  const typed = Object.getPrototypeOf(Uint8Array), from = typed.from;
  Object.defineProperty(typed, "from", {
    value: function (items, ...rest) { return from.call(this, typeof items === "string" ? [...items] : items, ...rest); },
    writable: true, configurable: true,
  });
})
