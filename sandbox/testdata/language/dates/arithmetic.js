// returns: ["2024-02-01","2024-02-29","2025-02-28","2024-03-01",31536000000,3,0,329,1709373600000,"NaN",true,1900,"NaN"]
const d = new Date("2024-01-31T10:00:00Z");
const addDays = (x, n) => new Date(x.getTime() + n * 864e5);
const addMonths = (x, n) => { const y = new Date(x); const day = y.getUTCDate(); y.setUTCDate(1); y.setUTCMonth(y.getUTCMonth() + n); y.setUTCDate(Math.min(day, new Date(Date.UTC(y.getUTCFullYear(), y.getUTCMonth() + 1, 0)).getUTCDate())); return y; };
const iso = (x) => x.toISOString().slice(0, 10);
return [iso(addDays(d, 1)), iso(addMonths(d, 1)), iso(addMonths(d, 13)), iso(new Date(2024, 1, 30)), new Date(2024, 0, 1) - new Date(2023, 0, 1), d.getDay(), d.getTimezoneOffset(), Math.round((Date.UTC(2024, 11, 25) - d) / 864e5), new Date(d).setMonth(1), new Date("x").getTime(), d < addDays(d, 1), new Date(0, 0).getFullYear(), new Date(8.64e15 + 1).getTime()].map((x) => (Number.isNaN(x) ? "NaN" : x));
