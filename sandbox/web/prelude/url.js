// URL and URLSearchParams, after the WHATWG URL standard. toASCII returns
// a domain's ASCII form, or undefined for what is not a domain.
(function (define, toASCII) {
  const ports = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
  const special = (u) => u.protocol in ports;

  // What is percent-encoded where, besides controls and all beyond ASCII.
  const sets = { fragment: " \"<>`", query: " \"#<>", specialQuery: " \"#<>'", path: " \"#<>?^`{}", user: " \"#<>?^`{}/:;=@[\\]|", form: " !\"#$%&'()+,/:;<=>?@[\\]^`{|}~" };
  const encode = (text, set) => {
    let out = "";
    for (const c of text) {
      if (c > "\x1f" && c < "\x7f" && !sets[set].includes(c)) out += c;
      else if (c === " " && set === "form") out += "+";
      else if (c < "\x80") out += "%" + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
      else out += c.length === 1 && c >= "\ud800" && c <= "\udfff" ? "%EF%BF%BD" : encodeURIComponent(c);
    }
    return out;
  };
  // Percent-decodes the whole text, with U+FFFD for what is not UTF-8.
  const decode = (text) => text.replace(/(?:%[0-9a-f]{2})+/gi, (all) => {
    try { return decodeURIComponent(all); } catch {
      return all.replace(/%([0-7][0-9a-f])|%[0-9a-f]{2}/gi, (_, low) => low ? String.fromCharCode(parseInt(low, 16)) : "\ufffd");
    }
  });

  const invalid = (input, base) => {
    const e = new TypeError("Invalid URL");
    e.code = "ERR_INVALID_URL";
    e.input = input;
    if (base !== undefined) e.base = base;
    return e;
  };

  const ipv4 = (host) => {
    const parts = host.replace(/\.$/, "").split(".");
    if (!/^(0x[0-9a-f]*|\d+)$/i.test(parts[parts.length - 1])) return host;
    const numbers = parts.map((p) => (/^0x[0-9a-f]*$/i.test(p) ? Number(p === "0x" ? 0 : p) : /^0[0-7]+$/.test(p) ? parseInt(p, 8) : /^\d+$/.test(p) ? Number(p) : NaN));
    const last = numbers.pop();
    if (numbers.length > 3 || numbers.some((n) => !(n < 256)) || !(last < 256 ** (4 - numbers.length))) return undefined;
    let n = last;
    numbers.forEach((x, i) => { n += x * 256 ** (3 - i); });
    return [24, 16, 8, 0].map((s) => Math.floor(n / 2 ** s) % 256).join(".");
  };
  const hostOf = (u, text) => {
    if (text.startsWith("[")) return /^\[[0-9a-f:.]+\]$/i.test(text) ? text.toLowerCase() : undefined;
    if (!special(u)) return /[\0\t\n\r #/:<>?@[\\\]^|]/.test(text) ? undefined : encode(text, "fragment");
    const ascii = toASCII(decode(text));
    if (ascii === undefined || (ascii === "" && u.protocol !== "file:") || /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(ascii)) return undefined;
    return u.protocol === "file:" && ascii === "localhost" ? "" : ipv4(ascii);
  };
  const portOf = (u, text) => {
    if (!/^\d*$/.test(text) || Number(text) > 65535) return undefined;
    const n = text === "" ? "" : String(Number(text));
    return n === ports[u.protocol] ? "" : n;
  };
  const setAuthority = (u, text) => {
    const at = text.lastIndexOf("@");
    if (at >= 0) {
      const [, name, password = ""] = /^([^:]*)(?::([^]*))?$/.exec(text.slice(0, at));
      u.username = encode(name, "user");
      u.password = encode(password, "user");
      text = text.slice(at + 1);
    }
    const m = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(text);
    if (!m || (at >= 0 && m[1] === "")) return false;
    u.hostname = hostOf(u, m[1]);
    u.port = portOf(u, m[2] ?? "");
    return u.hostname !== undefined && u.port !== undefined;
  };
  const pathOf = (u, text, before) => {
    const out = before;
    const parts = text.split(special(u) ? /[/\\]/ : "/");
    parts.forEach((p, i) => {
      const dots = p.replace(/%2e/gi, ".");
      const last = i === parts.length - 1;
      if (dots === "..") { out.pop(); if (last) out.push(""); }
      else if (dots === ".") { if (last) out.push(""); }
      else out.push(encode(p, "path"));
    });
    return out;
  };
  const queryOf = (u, text) => encode(text, special(u) ? "specialQuery" : "query");

  // parse returns the parts of a URL; null if the text is not one. path is a
  // list, or a string where the URL has no hierarchy (mailto:).
  const parse = (input, base) => {
    let text = String(input).replace(/^[\0-\x20]+|[\0-\x20]+$|[\t\n\r]/g, "");
    const u = { protocol: "", username: "", password: "", hostname: null, port: "", path: [], query: null, fragment: null };
    const hash = text.indexOf("#");
    if (hash >= 0) {
      u.fragment = encode(text.slice(hash + 1), "fragment");
      text = text.slice(0, hash);
    }
    const scheme = /^([a-z][a-z\d+.-]*):/i.exec(text);
    let rest = text;
    if (scheme) {
      u.protocol = scheme[0].toLowerCase();
      rest = text.slice(scheme[0].length);
    } else if (!base) return null;
    else u.protocol = base.protocol;
    const slashes = special(u) ? /^[/\\]{2}/ : /^\/\//;
    const relative = !scheme || (special(u) && base && base.protocol === u.protocol && !slashes.test(rest) && u.protocol !== "file:");
    let query = rest.indexOf("?");
    const cut = () => {
      query = rest.indexOf("?");
      if (query >= 0) {
        u.query = queryOf(u, rest.slice(query + 1));
        rest = rest.slice(0, query);
      }
    };
    if (relative && base) {
      if (typeof base.path === "string") {
        if (rest !== "" || hash < 0) return null;
        return { ...base, fragment: u.fragment };
      }
      if (!slashes.test(rest)) {
        Object.assign(u, { username: base.username, password: base.password, hostname: base.hostname, port: base.port });
        cut();
        if (rest === "") {
          u.path = base.path.slice();
          if (query < 0) u.query = base.query;
        } else if (/^[/\\]/.test(rest) && (rest[0] === "/" || special(u))) u.path = pathOf(u, rest.slice(1), []);
        else u.path = pathOf(u, rest, base.path.slice(0, -1));
        return u;
      }
    }
    if (special(u) ? u.protocol !== "file:" || slashes.test(rest) : slashes.test(rest)) {
      rest = u.protocol === "file:" || !special(u) ? rest.slice(2) : rest.replace(/^[/\\]*/, "");
      const end = rest.search(special(u) ? /[/\\?]/ : /[/?]/);
      if (!setAuthority(u, end < 0 ? rest : rest.slice(0, end))) return null;
      rest = end < 0 ? "" : rest.slice(end);
    } else if (!special(u) && !rest.startsWith("/")) {
      cut();
      u.path = encode(rest, "fragment").replace(/%20|%22|%3C|%3E|%60/g, (c) => decodeURIComponent(c));
      return u;
    } else if (u.protocol === "file:") u.hostname = "";
    cut();
    if (rest !== "" || special(u)) u.path = pathOf(u, rest.replace(special(u) ? /^[/\\]/ : /^\//, ""), []);
    return u;
  };

  const pathname = (u) => (typeof u.path === "string" ? u.path : u.path.length ? "/" + u.path.join("/") : "");
  const hostText = (u) => (u.hostname ?? "") + (u.port === "" ? "" : ":" + u.port);
  const write = (u) => u.protocol
    + (u.hostname === null ? "" : "//" + (u.username || u.password ? u.username + (u.password ? ":" + u.password : "") + "@" : "") + hostText(u))
    + pathname(u) + (u.query === null ? "" : "?" + u.query) + (u.fragment === null ? "" : "#" + u.fragment);

  const show = Symbol.for("nodejs.util.inspect.custom");
  const parsePairs = (text) => text.split("&").filter(Boolean).map((pair) => {
    const at = pair.indexOf("=");
    return (at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)]).map((x) => decode(x.replace(/\+/g, " ")));
  });
  let attach, fill;
  class URLSearchParams {
    #list = [];
    #changed = () => {};
    static {
      attach = (p, changed) => { p.#changed = changed; };
      fill = (p, text) => { p.#list = parsePairs(text); };
    }
    constructor(init = "") {
      if (init !== null && (typeof init === "object" || typeof init === "function")) {
        if (init[Symbol.iterator]) {
          for (const pair of init) {
            const [name, value, ...more] = pair;
            if (more.length || [...pair].length !== 2) throw new TypeError("Each query pair must be an iterable [name, value] tuple");
            this.#list.push([String(name), String(value)]);
          }
        } else {
          for (const key of Object.keys(init)) this.#list.push([key, String(init[key])]);
        }
      } else this.#list = parsePairs(String(init).replace(/^\?/, ""));
    }
    append(name, value) { this.#list.push([String(name), String(value)]); this.#changed(); }
    delete(name, value) {
      this.#list = this.#list.filter(([n, v]) => n !== String(name) || (value !== undefined && v !== String(value)));
      this.#changed();
    }
    get(name) { const p = this.#list.find(([n]) => n === String(name)); return p ? p[1] : null; }
    getAll(name) { return this.#list.filter(([n]) => n === String(name)).map(([, v]) => v); }
    has(name, value) { return this.#list.some(([n, v]) => n === String(name) && (value === undefined || v === String(value))); }
    set(name, value) {
      const at = this.#list.findIndex(([n]) => n === String(name));
      if (at < 0) this.#list.push([String(name), String(value)]);
      else this.#list = this.#list.filter(([n], i) => i <= at || n !== String(name)).map((p, i) => (i === at ? [p[0], String(value)] : p));
      this.#changed();
    }
    sort() { this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(f, self) { for (const [n, v] of this.#list) f.call(self, v, n, this); }
    *entries() { for (const [n, v] of this.#list) yield [n, v]; }
    *keys() { for (const [n] of this.#list) yield n; }
    *values() { for (const [, v] of this.#list) yield v; }
    [Symbol.iterator]() { return this.entries(); }
    get size() { return this.#list.length; }
    toString() { return this.#list.map((p) => p.map((x) => encode(x, "form")).join("=")).join("&"); }
    get [Symbol.toStringTag]() { return "URLSearchParams"; }
    [show]() { return Object.assign(Object.create({ constructor: URLSearchParams }), Object.fromEntries(this.#list)); }
  }

  const shown = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"];
  class URL {
    #u;
    #params;
    constructor(input, base) {
      const from = base === undefined ? null : parse(base, null);
      const u = base !== undefined && !from ? null : parse(input, from);
      if (!u) throw invalid(String(input), base === undefined ? undefined : String(base));
      this.#u = u;
    }
    static canParse(input, base) { return URL.parse(input, base) !== null; }
    static parse(input, base) { try { return new URL(input, base); } catch { return null; } }
    get href() { return write(this.#u); }
    set href(v) {
      const u = parse(v, null);
      if (!u) throw invalid(String(v));
      this.#u = u;
      this.#refill();
    }
    get origin() { return special(this.#u) && this.#u.protocol !== "file:" ? this.#u.protocol + "//" + hostText(this.#u) : "null"; }
    get protocol() { return this.#u.protocol; }
    set protocol(v) {
      const m = /^([a-z][a-z\d+.-]*):?/i.exec(String(v));
      if (m && (m[1].toLowerCase() + ":" in ports) === special(this.#u)) {
        this.#u.protocol = m[1].toLowerCase() + ":";
        this.#u.port = portOf(this.#u, this.#u.port);
      }
    }
    get username() { return this.#u.username; }
    set username(v) { if (this.#u.hostname) this.#u.username = encode(String(v), "user"); }
    get password() { return this.#u.password; }
    set password(v) { if (this.#u.hostname) this.#u.password = encode(String(v), "user"); }
    get host() { return hostText(this.#u); }
    set host(v) {
      const m = /^(\[[^\]]*\]|[^:/?#\\]*)(?::(\d+))?/.exec(String(v));
      this.hostname = m[1];
      if (m[2] !== undefined) this.port = m[2];
    }
    get hostname() { return this.#u.hostname ?? ""; }
    set hostname(v) {
      const h = typeof this.#u.path === "string" ? undefined : hostOf(this.#u, /^[^/?#\\]*/.exec(String(v))[0]);
      if (h !== undefined) this.#u.hostname = h;
    }
    get port() { return this.#u.port; }
    set port(v) {
      const p = portOf(this.#u, /^\d*/.exec(String(v))[0]);
      if (p !== undefined && this.#u.hostname) this.#u.port = p;
    }
    get pathname() { return pathname(this.#u); }
    set pathname(v) { if (typeof this.#u.path !== "string") this.#u.path = pathOf(this.#u, String(v).replace(special(this.#u) ? /^[/\\]/ : /^\//, ""), []); }
    get search() { return this.#u.query ? "?" + this.#u.query : ""; }
    set search(v) {
      const text = String(v).replace(/^\?/, "");
      this.#u.query = text === "" ? null : queryOf(this.#u, text);
      this.#refill();
    }
    get searchParams() {
      if (!this.#params) {
        this.#params = new URLSearchParams(this.#u.query ?? "");
        attach(this.#params, () => { this.#u.query = String(this.#params) || null; });
      }
      return this.#params;
    }
    get hash() { return this.#u.fragment ? "#" + this.#u.fragment : ""; }
    set hash(v) {
      const text = String(v).replace(/^#/, "");
      this.#u.fragment = text === "" ? null : encode(text, "fragment");
    }
    #refill() { if (this.#params) fill(this.#params, this.#u.query ?? ""); }
    toString() { return this.href; }
    toJSON() { return this.href; }
    get [Symbol.toStringTag]() { return "URL"; }
    [show]() { return Object.assign(Object.create({ constructor: URL }), Object.fromEntries(shown.map((k) => [k, this[k]]))); }
  }
  define(globalThis, "URL", URL);
  define(globalThis, "URLSearchParams", URLSearchParams);
})
