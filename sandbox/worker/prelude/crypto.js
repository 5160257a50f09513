// Random values come from the run's seed: a run that is repeated makes the
// same ones. They are not fit for keys.
(function (define, randomBytes) {
  const hex = (bytes) => Array.from(bytes, (b) => (b < 16 ? "0" : "") + b.toString(16)).join("");
  define(globalThis, "crypto", Object.freeze({
    randomUUID() {
      const b = new Uint8Array(randomBytes(16));
      b[6] = (b[6] & 15) | 64;
      b[8] = (b[8] & 63) | 128;
      const s = hex(b);
      return [s.slice(0, 8), s.slice(8, 12), s.slice(12, 16), s.slice(16, 20), s.slice(20)].join("-");
    },
    getRandomValues(target) {
      if (!ArrayBuffer.isView(target) || target instanceof Float32Array || target instanceof Float64Array || target instanceof DataView) {
        throw new TypeError("crypto.getRandomValues: the argument must be an integer typed array");
      }
      new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(new Uint8Array(randomBytes(target.byteLength)));
      return target;
    },
  }));
})
