// returns: [["0 B","1023 B","1.5 KB","4.7 GB"],["0s","1m 1s","1d 1h 1m 1s"]]
const bytes = (n) => { const u = ["B", "KB", "MB", "GB", "TB"]; let i = 0; while (n >= 1024 && i < u.length - 1) { n /= 1024; i++; } return `${n.toFixed(i ? 1 : 0)} ${u[i]}`; };
const duration = (ms) => { const s = Math.floor(ms / 1000); return [[Math.floor(s / 86400), "d"], [Math.floor(s / 3600) % 24, "h"], [Math.floor(s / 60) % 60, "m"], [s % 60, "s"]].filter(([n]) => n).map((p) => p.join("")).join(" ") || "0s"; };
return [[0, 1023, 1536, 5e9].map(bytes), [0, 61_000, 90_061_000].map(duration)];
