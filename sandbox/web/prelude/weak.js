// Weak references that never let go: memory is not given back during a run, which
// is too short for that.
(function (define) {
  define(globalThis, "WeakRef", class WeakRef {
    #target;
    constructor(target) {
      if (Object(target) !== target && typeof target !== "symbol") throw new TypeError("WeakRef: the argument must be an object");
      this.#target = target;
    }
    deref() { return this.#target; }
    get [Symbol.toStringTag]() { return "WeakRef"; }
  });
  define(globalThis, "FinalizationRegistry", class FinalizationRegistry {
    #tokens = new Set();
    constructor(cleanup) { if (typeof cleanup !== "function") throw new TypeError("FinalizationRegistry: the argument must be a function"); }
    register(target, held, token) { if (token !== undefined) this.#tokens.add(token); }
    unregister(token) { return this.#tokens.delete(token); }
    get [Symbol.toStringTag]() { return "FinalizationRegistry"; }
  });
})
