(function (define, encodeText, decodeBytes) {
  define(globalThis, "TextEncoder", class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return new Uint8Array(encodeText(String(text))); }
    encodeInto(text, target) {
      let read = 0, written = 0;
      for (const c of String(text)) {
        const bytes = new Uint8Array(encodeText(c));
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += c.length;
      }
      return { read, written };
    }
  });
  define(globalThis, "TextDecoder", class TextDecoder {
    #fatal; #keep;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!/^\s*(utf-?8|unicode-1-1-utf-8|us-ascii|ascii)\s*$/i.test(label)) {
        throw new RangeError("TextDecoder: only utf-8 is known here, got " + label);
      }
      this.#fatal = fatal;
      this.#keep = ignoreBOM;
    }
    get encoding() { return "utf-8"; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#keep; }
    decode(data) {
      if (data === undefined) return "";
      const text = ArrayBuffer.isView(data)
        ? decodeBytes(data.buffer, data.byteOffset, data.byteLength, this.#fatal)
        : decodeBytes(data, 0, data && data.byteLength, this.#fatal);
      return !this.#keep && text[0] === "\ufeff" ? text.slice(1) : text;
    }
  });
})
