// Writes data.txt: how Node, and so Unicode's CLDR, writes dates, numbers and
// units in en-US. Run it as
//
//	TZ=UTC node gen.mjs > data.txt
//
// A line is a kind, its keys and its text, with tabs between.
const l = "en-US";
const lines = [];
const put = (...fields) => lines.push(fields.map((f) => String(f)).join("\t"));

// Dates as patterns: the letters of CLDR, literals in quotes. 2006-03-05 is
// a Sunday; month, day and hour have one digit, so that a zero is seen.
const at = new Date(Date.UTC(2006, 2, 5, 7, 8, 9)), evening = new Date(Date.UTC(2006, 2, 5, 19, 8, 9));
const letters = { weekday: "E", era: "G", year: "y", month: "M", day: "d", hour: "h", minute: "m", second: "s", fractionalSecond: "S", dayPeriod: "a", timeZoneName: "z" };
const pattern = (locale, options, d = at) => new Intl.DateTimeFormat(locale, { timeZone: "UTC", ...options }).formatToParts(d).map(({ type, value }) => {
  if (type === "literal") return "'" + value + "'";
  const digits = /^\d+$/.test(value) ? Math.min(value.length, 2) : 1;
  return (type === "hour" && d === evening && value === "19" ? "H" : letters[type]).repeat(type === "year" && value.length > 2 ? 1 : digits);
}).join("");
const months = { n: "numeric", t: "short", l: "long" };
for (const w of ["", "E"]) for (const y of ["", "y"]) for (const m of ["", "n", "t", "l"]) for (const d of ["", "d"]) {
  if (!(w || y || m || d)) continue;
  const o = { ...(w && { weekday: m === "l" ? "long" : "short" }), ...(y && { year: "numeric" }), ...(m && { month: months[m] }), ...(d && { day: "numeric" }) };
  put("date", w + y + m + d, pattern(l, o));
}
const cycles = { h12: at, h23: evening };
for (const [cycle, d] of Object.entries(cycles)) for (const fields of ["h", "hm", "hms", "m", "ms", "s"]) {
  const o = { ...(fields.includes("h") && { hour: "numeric", hourCycle: cycle }), ...(fields.includes("m") && { minute: "numeric" }), ...(fields.includes("s") && { second: "numeric" }) };
  put("time", cycle, fields, pattern(l, o, cycle === "h23" && fields.includes("h") ? evening : at));
}
put("cycle", new Intl.DateTimeFormat(l, { hour: "numeric" }).resolvedOptions().hourCycle);
put("periods", ...[at, evening].map((d) => new Intl.DateTimeFormat(l, { hour: "numeric", hourCycle: "h12", timeZone: "UTC" }).formatToParts(d).find((p) => p.type === "dayPeriod")?.value));
for (const s of ["full", "long", "medium", "short"]) {
  put("dateStyle", s, pattern(l, { dateStyle: s }).replace(/y+/, new Intl.DateTimeFormat(l, { dateStyle: s, timeZone: "UTC" }).formatToParts(at).find((p) => p.type === "year").value.length === 2 ? "yy" : "y"));
  const month = new Intl.DateTimeFormat(l, { dateStyle: s, timeZone: "UTC" }).formatToParts(at).find((p) => p.type === "month").value;
  put("styleMonth", s, /^\d/.test(month) ? "n" : month === new Intl.DateTimeFormat(l, { month: "long", day: "numeric", timeZone: "UTC" }).formatToParts(at).find((p) => p.type === "month").value ? "l" : "t");
  // What stands between date and time.
  const both = new Intl.DateTimeFormat(l, { dateStyle: s, timeStyle: "short", timeZone: "UTC" }).format(at);
  const date = new Intl.DateTimeFormat(l, { dateStyle: s, timeZone: "UTC" }).format(at), time = new Intl.DateTimeFormat(l, { timeStyle: "short", timeZone: "UTC" }).format(at);
  put("glue", s, both.slice(date.length, both.length - time.length));
}
const glue = (key, o) => {
  const both = new Intl.DateTimeFormat(l, { ...o, hour: "numeric", minute: "numeric", timeZone: "UTC" }).format(at);
  const date = new Intl.DateTimeFormat(l, { ...o, timeZone: "UTC" }).format(at), time = new Intl.DateTimeFormat(l, { hour: "numeric", minute: "numeric", timeZone: "UTC" }).format(at);
  put("glue", key, both.slice(date.length, both.length - time.length));
};
glue("n", { year: "numeric", month: "numeric", day: "numeric" });
glue("t", { year: "numeric", month: "short", day: "numeric" });
glue("l", { year: "numeric", month: "long", day: "numeric" });
glue("E", { weekday: "short" });
glue("d", { day: "numeric" });
for (const width of ["long", "short", "narrow"]) {
  put("months", width, ...Array.from({ length: 12 }, (_, m) => new Intl.DateTimeFormat(l, { month: width, day: "numeric", timeZone: "UTC" }).formatToParts(new Date(Date.UTC(2006, m, 5))).find((p) => p.type === "month").value));
  put("weekdays", width, ...Array.from({ length: 7 }, (_, d) => new Intl.DateTimeFormat(l, { weekday: width, timeZone: "UTC" }).format(new Date(Date.UTC(2006, 2, 5 + d)))));
}

// Numbers.
const parts = (o, n) => new Intl.NumberFormat(l, o).formatToParts(n);
const find = (ps, type) => ps.find((p) => p.type === type)?.value ?? "";
const around = (ps) => ps.map((p) => ({ integer: "0", decimal: "", fraction: "", group: "", minusSign: "-", currency: "¤", percentSign: "%", unit: p.value, compact: "K", literal: p.value, exponentSeparator: p.value, exponentInteger: "" })[p.type] ?? p.value).join("").replace(/0+/, "0");
put("percent", around(parts({ style: "percent" }, 5)));
put("currency", "standard", around(parts({ style: "currency", currency: "EUR", currencyDisplay: "symbol" }, 5)));
put("currency", "negative", around(parts({ style: "currency", currency: "EUR" }, -5)));
put("currency", "letters", around(parts({ style: "currency", currency: "EUR", currencyDisplay: "code" }, 5)));
put("currency", "accounting", around(parts({ style: "currency", currency: "EUR", currencySign: "accounting" }, -5)));
for (const display of ["short", "long"]) for (let e = 3; e <= 15; e++) for (const [plural, n] of [["one", 1], ["other", 2]]) {
  const ps = parts({ notation: "compact", compactDisplay: display, useGrouping: false }, n * 10 ** e);
  put("compact", display, e, plural, find(ps, "integer").length, ps.map((p) => (p.type === "integer" ? "0" : p.value)).join(""));
}

// Currencies: digits, the symbol, narrow symbol and names for one and many.
for (const c of Intl.supportedValuesOf("currency")) {
  const of = (l, display, n) => new Intl.NumberFormat(l, { style: "currency", currency: c, currencyDisplay: display }).formatToParts(n).find((p) => p.type === "currency").value;
  const all = (l) => [of(l, "symbol", 2), of(l, "narrowSymbol", 2), new Intl.NumberFormat(l, { style: "currency", currency: c, currencyDisplay: "name", maximumFractionDigits: 0 }).formatToParts(1).find((p) => p.type === "currency").value, of(l, "name", 2)];
  const digits = new Intl.NumberFormat("en", { style: "currency", currency: c }).resolvedOptions().maximumFractionDigits;
  const us = all(l);
  if (us.every((x) => x === c) && digits === 2) continue;
  put("money", c, digits, ...us);
}

// Units, in English.
const units = [...Intl.supportedValuesOf("unit"), "kilometer-per-hour", "mile-per-hour", "meter-per-second", "mile-per-gallon", "liter-per-kilometer", "bit-per-second", "kilobit-per-second", "megabit-per-second", "gigabit-per-second", "byte-per-second", "kilobyte-per-second", "megabyte-per-second", "gigabyte-per-second"];
for (const u of units) for (const display of ["short", "long", "narrow"]) {
  const text = (n) => new Intl.NumberFormat(l, { style: "unit", unit: u, unitDisplay: display }).format(n).replace(String(n), "0");
  const mine = [text(1), text(2)];
  put("unit", u, display, ...mine);
}

// Relative times and lists, in English.
for (const style of ["long", "short", "narrow"]) {
  for (const unit of ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]) {
    const f = new Intl.RelativeTimeFormat("en", { style });
    put("relative", style, unit, ...[-1, -2, 1, 2].map((n) => f.format(n, unit).replace(/\d/, "0")));
    const auto = new Intl.RelativeTimeFormat("en", { style, numeric: "auto" });
    put("named", style, unit, ...[-1, 0, 1].map((n) => auto.format(n, unit)));
  }
  for (const type of ["conjunction", "disjunction", "unit"]) {
    const f = (list) => new Intl.ListFormat(l, { type, style }).format(list);
    const four = f(["A", "B", "C", "D"]);
    put("list", type, style, f(["A", "B"]).slice(1, -1), four.slice(1, four.indexOf("B")), four.slice(four.indexOf("C") + 1, -1));
  }
}

// Time zones: names as of 2024.
const winter = new Date(Date.UTC(2024, 0, 15)), summer = new Date(Date.UTC(2024, 6, 15));
const zoneName = (l, timeZone, name, d) => new Intl.DateTimeFormat(l, { timeZone, timeZoneName: name }).formatToParts(d).find((p) => p.type === "timeZoneName").value;
const offset = (z, d) => zoneName("en-US", z, "longOffset", d);
const groups = new Map();
for (const z of new Set([...Intl.supportedValuesOf("timeZone"), "Asia/Kolkata", "Asia/Kathmandu", "America/Argentina/Buenos_Aires", "Asia/Ho_Chi_Minh", "Europe/Kyiv", "Asia/Yangon", "Africa/Asmara", "Atlantic/Faroe", "Pacific/Chuuk", "Pacific/Pohnpei", "America/Nuuk", "America/Indiana/Indianapolis", "America/Kentucky/Louisville"])) {
  // The season with the smaller offset has standard time.
  const minutes = (d) => { const m = /GMT([+-])(\d+):(\d+)/.exec(offset(z, d)); return (m[1] === "-" ? -1 : 1) * (60 * m[2] + +m[3]); };
  const [std, dst] = minutes(winter) <= minutes(summer) ? [winter, summer] : [summer, winter];
  const names = (l, name) => [zoneName(l, z, name, std), offset(z, std) === offset(z, dst) ? "" : zoneName(l, z, name, dst)].map((n) => (/^GMT[+-]/.test(n) ? "" : n));
  const key = [...names("en-US", "long"), ...names("en-US", "short")].join("\t");
  groups.set(key, [...(groups.get(key) ?? []), z]);
}
for (const [key, zones] of groups) put("zone", zones.join(" "), key);

console.log(lines.join("\n"));
