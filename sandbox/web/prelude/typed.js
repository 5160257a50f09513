// goja looks for the iterator of a text where only objects have one.
(function (define) {
  const typed = Object.getPrototypeOf(Uint8Array), from = typed.from;
  Object.defineProperty(typed, "from", {
    value: function (items, ...rest) { return from.call(this, typeof items === "string" ? [...items] : items, ...rest); },
    writable: true, configurable: true,
  });
})
