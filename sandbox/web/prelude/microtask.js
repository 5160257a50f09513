(function (define) {
  const settled = Promise.resolve();
  define(globalThis, "queueMicrotask", function queueMicrotask(callback) {
    if (typeof callback !== "function") throw new TypeError("queueMicrotask: the argument must be a function");
    settled.then(() => { callback(); });
  });
})
