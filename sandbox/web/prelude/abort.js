(function (define) {
  define(globalThis, "DOMException", class DOMException extends Error {
    #name;
    constructor(message = "", name = "Error") { super(message); this.#name = name; }
    get name() { return this.#name; }
  });
  define(globalThis, "Event", class Event {
    constructor(type) { this.type = type; this.target = null; }
  });
  define(globalThis, "EventTarget", class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener, options) {
      if (!listener) return;
      const list = this.#listeners.get(type) || [];
      if (!list.some((l) => l.listener === listener)) list.push({ listener, once: !!(options && options.once) });
      this.#listeners.set(type, list);
    }
    removeEventListener(type, listener) {
      this.#listeners.set(type, (this.#listeners.get(type) || []).filter((l) => l.listener !== listener));
    }
    dispatchEvent(event) {
      event.target = this;
      for (const l of (this.#listeners.get(event.type) || []).slice()) {
        if (l.once) this.removeEventListener(event.type, l.listener);
        typeof l.listener === "function" ? l.listener.call(this, event) : l.listener.handleEvent(event);
      }
      return true;
    }
  });
  let abort;
  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason = undefined;
    #on = null;
    get onabort() { return this.#on; }
    set onabort(f) {
      if (!this.#on) this.addEventListener("abort", (e) => { if (this.#on) this.#on(e); });
      this.#on = typeof f === "function" ? f : null;
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    static abort(reason) { const s = new AbortSignal(); abort(s, reason); return s; }
    static timeout(ms) {
      const s = new AbortSignal();
      setTimeout(() => abort(s, new DOMException("The operation was aborted due to timeout", "TimeoutError")), ms);
      return s;
    }
    static any(signals) {
      const s = new AbortSignal();
      for (const other of signals) {
        if (other.aborted) { abort(s, other.reason); break; }
        other.addEventListener("abort", () => abort(s, other.reason), { once: true });
      }
      return s;
    }
    static {
      abort = (s, reason) => {
        if (s.#aborted) return;
        s.#aborted = true;
        s.#reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
        s.dispatchEvent(new Event("abort"));
      };
    }
  }
  define(globalThis, "AbortSignal", AbortSignal);
  define(globalThis, "AbortController", class AbortController {
    #signal = new AbortSignal();
    get signal() { return this.#signal; }
    abort(reason) { abort(this.#signal, reason); }
  });
})
