// TextEncoder and TextDecoder over Go's encodings. decodeBytes returns the
// text, and how many bytes at the end are the beginning of a character.
(function (define, encodeText, decodeBytes, encodingOf) {
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
    #encoding; #fatal; #keepMark; #rest = new Uint8Array(0); #begun = false;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      this.#encoding = encodingOf(String(label));
      if (this.#encoding === undefined) throw new RangeError(`The "${label}" encoding is not supported`);
      this.#fatal = !!fatal;
      this.#keepMark = !!ignoreBOM;
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#keepMark; }
    decode(data = new Uint8Array(0), { stream = false } = {}) {
      let bytes = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
      if (this.#rest.length) {
        const all = new Uint8Array(this.#rest.length + bytes.length);
        all.set(this.#rest);
        all.set(bytes, this.#rest.length);
        bytes = all;
      }
      let [text, open] = decodeBytes(bytes.buffer, bytes.byteOffset, bytes.byteLength, this.#encoding, this.#fatal, stream);
      if (!this.#begun && !this.#keepMark && text[0] === "\ufeff") text = text.slice(1);
      this.#rest = stream ? bytes.slice(bytes.length - open) : new Uint8Array(0);
      this.#begun = stream && (this.#begun || text !== "");
      return text;
    }
  });
})
