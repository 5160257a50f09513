// Random values come from the run's seed: a run that is repeated makes the
// same ones. They are not fit for keys.
(function (define, randomBytes, digest, mac) {
  const failure = (name, message) => {
    const e = new Error(message);
    e.name = name;
    return e;
  };
  const bytesOf = (data) => {
    if (ArrayBuffer.isView(data)) return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
    if (data instanceof ArrayBuffer) return data.slice(0);
    throw new TypeError("crypto.subtle: data must be an ArrayBuffer or a view of one: write new TextEncoder().encode(text)");
  };
  const nameOf = (algorithm) => String((algorithm && algorithm.name) || algorithm).toUpperCase();
  const hashOf = (algorithm) => {
    const name = nameOf(algorithm);
    if (!/^SHA-(1|256|384|512)$/.test(name)) throw failure("NotSupportedError", "crypto.subtle: " + name + " is not known here: SHA-1, SHA-256, SHA-384 and SHA-512 are");
    return name;
  };
  const secrets = new WeakMap();
  const hmac = (algorithm, key, data) => {
    if (nameOf(algorithm) !== "HMAC" || !secrets.has(key)) throw failure("NotSupportedError", "crypto.subtle: only HMAC signs here, with a key of importKey");
    return mac(key.algorithm.hash.name, secrets.get(key), bytesOf(data));
  };
  const subtle = {
    async digest(algorithm, data) { return digest(hashOf(algorithm), bytesOf(data)); },
    async importKey(format, data, algorithm, extractable, usages) {
      if (format !== "raw" || nameOf(algorithm) !== "HMAC") throw failure("NotSupportedError", "crypto.subtle.importKey: only raw HMAC keys are known here");
      const secret = bytesOf(data);
      const key = Object.freeze({ type: "secret", extractable: !!extractable, usages: [...usages], algorithm: Object.freeze({ name: "HMAC", hash: Object.freeze({ name: hashOf(algorithm.hash) }), length: secret.byteLength * 8 }) });
      secrets.set(key, secret);
      return key;
    },
    async sign(algorithm, key, data) { return hmac(algorithm, key, data); },
    async verify(algorithm, key, signature, data) {
      const want = new Uint8Array(hmac(algorithm, key, data)), got = new Uint8Array(bytesOf(signature));
      return want.length === got.length && want.every((b, i) => b === got[i]);
    },
  };
  for (const name of ["encrypt", "decrypt", "generateKey", "deriveKey", "deriveBits", "exportKey", "wrapKey", "unwrapKey"]) {
    subtle[name] = async () => { throw failure("NotSupportedError", "crypto.subtle." + name + " does not exist here: digest, and sign and verify with HMAC, do"); };
  }
  const hex = (bytes) => Array.from(bytes, (b) => (b < 16 ? "0" : "") + b.toString(16)).join("");
  define(globalThis, "crypto", Object.freeze({
    subtle: Object.freeze(subtle),
    randomUUID() {
      const b = new Uint8Array(randomBytes(16));
      b[6] = (b[6] & 15) | 64;
      b[8] = (b[8] & 63) | 128;
      const s = hex(b);
      return [s.slice(0, 8), s.slice(8, 12), s.slice(12, 16), s.slice(16, 20), s.slice(20)].join("-");
    },
    getRandomValues(target) {
      if (!ArrayBuffer.isView(target) || target instanceof Float32Array || target instanceof Float64Array || target instanceof DataView) {
        throw failure("TypeMismatchError", "crypto.getRandomValues: the argument must be an integer typed array");
      }
      new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(new Uint8Array(randomBytes(target.byteLength)));
      return target;
    },
  }));
})
