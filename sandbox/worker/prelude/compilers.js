// Takes away what makes code from text. `Function` stays as a name, so that
// `x instanceof Function` and Function.prototype keep their meaning.
(function (evaluate, make) {
  const define = Object.defineProperty;
  const prototype = Function.prototype;
  define(make, "name", { value: "Function" });
  define(make, "prototype", { value: prototype, writable: false, enumerable: false, configurable: false });
  const fixed = { value: make, writable: false, enumerable: false, configurable: false };
  define(prototype, "constructor", fixed);
  define(Object.getPrototypeOf(function* () {}), "constructor", fixed);
  define(Object.getPrototypeOf(async function () {}), "constructor", fixed);
  define(globalThis, "Function", fixed);
  define(globalThis, "eval", { value: evaluate, writable: false, enumerable: false, configurable: false });
})
