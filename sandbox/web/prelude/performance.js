(function (define, now, origin) {
  define(globalThis, "performance", Object.freeze({
    timeOrigin: origin,
    now() { return now(); },
    mark() {},
    measure() {},
  }));
})
