// returns: [{"month":"11","day":"03","year":"2024","hour":"01","minute":"59","second":"59"},-240,-300,330,"2024-11-03T06:59:59","2024-11-03",14]
function partsIn(d: Date, timeZone: string) {
  const parts = new Intl.DateTimeFormat("en-US", { timeZone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" }).formatToParts(d);
  return Object.fromEntries(parts.filter((p) => p.type !== "literal").map((p) => [p.type, p.value]));
}
function offset(d: Date, tz: string) { const p = partsIn(d, tz); return (Date.UTC(+p.year, +p.month - 1, +p.day, +p.hour, +p.minute, +p.second) - d.getTime()) / 60000; }
const iso = (d: Date, tz: string) => { const p = partsIn(d, tz); return `${p.year}-${p.month}-${p.day}T${p.hour}:${p.minute}:${p.second}`; };
const d = new Date("2024-11-03T05:59:59Z"), e = new Date("2024-11-03T06:00:00Z");
return [partsIn(d, "America/New_York"), offset(d, "America/New_York"), offset(e, "America/New_York"), offset(d, "Asia/Kolkata"), iso(d, "Europe/Paris"), iso(d, "Asia/Tokyo").slice(0, 10), new Date(d.toLocaleString("en-US", { timeZone: "Asia/Tokyo" })).getHours()];
