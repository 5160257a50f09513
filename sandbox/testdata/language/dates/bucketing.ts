// returns: [[["2024-01-01",3],["2024-01-08",4],["2024-02-29",8]],[["2024-W01",3],["2024-W02",4],["2024-W09",8]],[["2024-01",7],["2024-02",8]],[["Q1",15]]]
type Event = { at: string; n: number };
const events: Event[] = [{ at: "2024-01-01T00:30:00Z", n: 1 }, { at: "2024-01-01T23:59:59Z", n: 2 }, { at: "2024-01-08T12:00:00Z", n: 4 }, { at: "2024-02-29T12:00:00Z", n: 8 }];
const week = (s: string) => { const d = new Date(s); d.setUTCHours(0, 0, 0, 0); d.setUTCDate(d.getUTCDate() + 4 - (d.getUTCDay() || 7)); const y = d.getUTCFullYear(); return `${y}-W${String(Math.ceil(((+d - Date.UTC(y, 0, 1)) / 864e5 + 1) / 7)).padStart(2, "0")}`; };
const bucket = (key: (e: Event) => string) => Object.entries(events.reduce<Record<string, number>>((m, e) => { m[key(e)] = (m[key(e)] || 0) + e.n; return m; }, {}));
return [bucket((e) => e.at.slice(0, 10)), bucket((e) => week(e.at)), bucket((e) => e.at.slice(0, 7)), bucket((e) => `Q${Math.floor(new Date(e.at).getUTCMonth() / 3) + 1}`)];
