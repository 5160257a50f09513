// A small part of Intl, in American English: what scripts use to print
// numbers, dates and sorted names. Other locales are taken as en-US.
(function (define) {
  const put = (o, name, f) => Object.defineProperty(o, name, { value: f, writable: true, enumerable: false, configurable: true });
  const group = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");
  const signs = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", CNY: "CN¥", KRW: "₩", BRL: "R$", CAD: "CA$", AUD: "A$", CHF: "CHF " };
  const number = (value, o) => {
    o = o || {};
    if (typeof value === "bigint") return (value < 0n ? "-" : "") + group(String(value < 0n ? -value : value));
    let n = Number(value);
    if (Number.isNaN(n)) return "NaN";
    const negative = n < 0;
    n = Math.abs(n);
    let suffix = "";
    if (o.style === "percent") { n *= 100; suffix = "%"; }
    const compact = o.notation === "compact";
    if (compact) {
      for (const [size, letter] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]]) {
        if (n >= size) { n /= size; suffix = letter + suffix; break; }
      }
    }
    const currency = o.style === "currency" ? String(o.currency).toUpperCase() : "";
    const usual = currency ? (currency === "JPY" || currency === "KRW" ? 0 : 2) : 0;
    const least = o.minimumFractionDigits ?? (o.maximumFractionDigits !== undefined ? Math.min(usual, o.maximumFractionDigits) : usual);
    const most = Math.max(least, o.maximumFractionDigits ?? (currency ? usual : o.style === "percent" ? 0 : compact ? (n < 100 ? 1 : 0) : 3));
    let text;
    if (n === Infinity) text = "∞";
    else if (o.maximumSignificantDigits) text = String(Number(n.toPrecision(o.maximumSignificantDigits)));
    else text = n >= 1e21 ? BigInt(n).toString() : round(n, most);
    let [whole, fraction = ""] = text.split(".");
    while (fraction.length > least && fraction.endsWith("0")) fraction = fraction.slice(0, -1);
    while (!o.maximumSignificantDigits && fraction.length < least) fraction += "0";
    whole = whole.padStart(o.minimumIntegerDigits || 1, "0");
    if (o.useGrouping !== false && !(compact && whole.length < 5)) whole = group(whole);
    if (o.style === "unit") suffix += " " + o.unit;
    return (negative ? "-" : "") + (currency ? signs[currency] || currency + " " : "") + whole + (fraction ? "." + fraction : "") + suffix;
  };
  // Decimal rounding, half away from zero: 1.005 is written as its digits say.
  const round = (n, digits) => {
    const [m, e = "0"] = String(n).split("e");
    const shifted = Math.round(Number(m + "e" + (Number(e) + digits)));
    const [m2, e2 = "0"] = String(shifted).split("e");
    return Number(m2 + "e" + (Number(e2) - digits)).toFixed(digits);
  };
  const months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const two = (n) => String(n).padStart(2, "0");
  const zone = (o) => {
    const z = o.timeZone;
    if (z !== undefined && !/^(UTC|GMT|Etc\/(UTC|GMT))$/i.test(z)) {
      throw new RangeError("time zones other than UTC are not known here: " + z + "; use a server's tool, such as the time server");
    }
  };
  const styles = {
    full: { weekday: "long", year: "numeric", month: "long", day: "numeric" },
    long: { year: "numeric", month: "long", day: "numeric" },
    medium: { year: "numeric", month: "short", day: "numeric" },
    short: { year: "2-digit", month: "numeric", day: "numeric" },
  };
  const date = (d, options, usual) => {
    const time = new Date(d).getTime();
    if (Number.isNaN(time)) return "Invalid Date";
    d = new Date(time);
    let o = Object.assign({}, options);
    zone(o);
    if (o.dateStyle) Object.assign(o, styles[o.dateStyle]);
    if (o.timeStyle) Object.assign(o, { hour: "numeric", minute: "2-digit" }, o.timeStyle === "short" ? {} : { second: "2-digit" });
    const asked = ["weekday", "year", "month", "day", "hour", "minute", "second"].some((k) => o[k] !== undefined);
    if (!asked) {
      if (usual !== "time") Object.assign(o, { year: "numeric", month: "numeric", day: "numeric" });
      if (usual !== "date") Object.assign(o, { hour: "numeric", minute: "2-digit", second: "2-digit" });
    }
    const year = o.year && (o.year === "2-digit" ? two(d.getUTCFullYear() % 100) : String(d.getUTCFullYear()));
    const day = o.day && (o.day === "2-digit" ? two(d.getUTCDate()) : String(d.getUTCDate()));
    const weekday = o.weekday && (o.weekday === "long" ? days[d.getUTCDay()] : days[d.getUTCDay()].slice(0, 3));
    const m = d.getUTCMonth();
    let text = "";
    if (o.month === "long" || o.month === "short") {
      const name = o.month === "long" ? months[m] : months[m].slice(0, 3);
      const head = [name, day].filter(Boolean).join(" ");
      text = [weekday, year && day ? head + ", " + year : [head, year].filter(Boolean).join(" ")].filter(Boolean).join(", ");
    } else {
      const month = o.month && (o.month === "2-digit" ? two(m + 1) : String(m + 1));
      text = [weekday, [month, day, year].filter(Boolean).join("/")].filter(Boolean).join(", ");
    }
    let clock = "";
    if (o.hour !== undefined || o.minute !== undefined || o.second !== undefined) {
      const half = !(o.hour12 === false || o.hourCycle === "h23");
      const h = d.getUTCHours();
      const hour = half ? h % 12 || 12 : h;
      const parts = [];
      if (o.hour !== undefined) parts.push(o.hour === "2-digit" || !half ? two(hour) : String(hour));
      if (o.minute !== undefined) parts.push(parts.length || o.minute === "2-digit" ? two(d.getUTCMinutes()) : String(d.getUTCMinutes()));
      if (o.second !== undefined) parts.push(parts.length || o.second === "2-digit" ? two(d.getUTCSeconds()) : String(d.getUTCSeconds()));
      clock = parts.join(":") + (half && o.hour !== undefined ? " " + (h < 12 ? "AM" : "PM") : "");
      if (o.timeZoneName) clock += " UTC";
    }
    const glue = o.dateStyle === "full" || o.dateStyle === "long" ? " at " : ", ";
    return [text, clock].filter(Boolean).join(glue);
  };
  put(Number.prototype, "toLocaleString", function toLocaleString(locale, o) { return number(this, o); });
  put(BigInt.prototype, "toLocaleString", function toLocaleString(locale, o) { return number(BigInt(this), o); });
  put(Date.prototype, "toLocaleString", function toLocaleString(locale, o) { return date(this, o, "both"); });
  put(Date.prototype, "toLocaleDateString", function toLocaleDateString(locale, o) { return date(this, o, "date"); });
  put(Date.prototype, "toLocaleTimeString", function toLocaleTimeString(locale, o) { return date(this, o, "time"); });

  const plain = String.prototype.localeCompare;
  const base = (s) => s.normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const compare = (a, b, o) => {
    a = String(a); b = String(b); o = o || {};
    if (o.sensitivity === "base") { a = base(a).toLowerCase(); b = base(b).toLowerCase(); }
    else if (o.sensitivity === "accent") { a = a.toLowerCase(); b = b.toLowerCase(); }
    else if (o.sensitivity === "case") { a = base(a); b = base(b); }
    if (!o.numeric) return plain.call(a, b);
    const split = /\d+|\D+/g;
    const x = a.match(split) || [], y = b.match(split) || [];
    for (let i = 0; i < x.length && i < y.length; i++) {
      const p = x[i], q = y[i];
      const c = /^\d/.test(p) && /^\d/.test(q) ? Number(p) - Number(q) : plain.call(p, q);
      if (c) return c < 0 ? -1 : 1;
    }
    return Math.sign(x.length - y.length);
  };
  put(String.prototype, "localeCompare", function localeCompare(other, locale, o) { return compare(this, other, o); });
  const options = (o, more) => Object.assign({ locale: "en-US" }, o, more);
  define(globalThis, "Intl", Object.freeze({
    NumberFormat: class NumberFormat {
      #o; constructor(locale, o) { this.#o = o || {}; this.format = (n) => number(n, this.#o); }
      resolvedOptions() { return options(this.#o); }
    },
    DateTimeFormat: class DateTimeFormat {
      #o; constructor(locale, o) { this.#o = o || {}; zone(this.#o); this.format = (d) => date(d === undefined ? Date.now() : d, this.#o, "date"); }
      resolvedOptions() { return options(this.#o, { timeZone: "UTC", calendar: "gregory" }); }
    },
    Collator: class Collator {
      #o; constructor(locale, o) { this.#o = o || {}; this.compare = (a, b) => compare(a, b, this.#o); }
      resolvedOptions() { return options(this.#o); }
    },
    PluralRules: class PluralRules {
      #o; constructor(locale, o) { this.#o = o || {}; }
      select(n) {
        if (this.#o.type !== "ordinal") return n === 1 ? "one" : "other";
        const t = n % 10, h = n % 100;
        return t === 1 && h !== 11 ? "one" : t === 2 && h !== 12 ? "two" : t === 3 && h !== 13 ? "few" : "other";
      }
    },
    ListFormat: class ListFormat {
      #o; constructor(locale, o) { this.#o = o || {}; }
      format(items) {
        const list = [...items], word = this.#o.type === "disjunction" ? "or" : "and";
        if (list.length < 2) return list.join("");
        if (list.length === 2) return list.join(" " + word + " ");
        return list.slice(0, -1).join(", ") + ", " + word + " " + list[list.length - 1];
      }
    },
  }));
})
