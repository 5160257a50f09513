// returns: [["2024-02-27","2024-02-28","2024-02-29","2024-03-01","2024-03-02"],6,true,"2024-03-01","Thu"]
const days = (a, b) => { const out = []; for (let d = new Date(a); d <= new Date(b); d.setUTCDate(d.getUTCDate() + 1)) out.push(d.toISOString().slice(0, 10)); return out; };
const weekday = (s) => ![0, 6].includes(new Date(s).getUTCDay());
const overlap = ([a, b], [c, d]) => a <= d && c <= b;
return [days("2024-02-27", "2024-03-02"), days("2024-02-27", "2024-03-05").filter(weekday).length, overlap(["2024-01-01", "2024-01-05"], ["2024-01-05", "2024-02-01"]), ["2024-03-01", "2023-12-31", "2024-01-15"].sort().at(-1), ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][new Date("2024-02-29").getUTCDay()]];
