// returns: {"levels":{"INFO":2,"ERROR":1,"WARN":1},"skipped":1,"slow":["/orders","/users"],"avg":100.66666666666667,"span":90}
const log = `2024-05-01T10:00:00Z INFO [api] GET /users 200 12ms
2024-05-01T10:00:05Z ERROR [db] connection lost: timeout after 30s
2024-05-01T10:01:00Z WARN [api] GET /orders 503 250ms
2024-05-01T10:01:30Z INFO [api] POST /users 201 40ms
garbage line`;
const re = /^(?<at>\S+) (?<level>[A-Z]+) \[(?<mod>\w+)\] (?<msg>.*)$/;
const entries = log.split("\n").map((l) => l.match(re)?.groups).filter(Boolean);
const times = [...log.matchAll(/(?<verb>GET|POST) (?<path>\/\w+) (?<status>\d{3}) (?<ms>\d+)ms/g)].map(({ groups: g }) => ({ ...g, ms: +g.ms }));
return { levels: entries.reduce((m, { level }) => ({ ...m, [level]: (m[level] ?? 0) + 1 }), {}), skipped: log.split("\n").length - entries.length, slow: times.filter((t) => t.ms > 30).map((t) => t.path), avg: times.reduce((s, t) => s + t.ms, 0) / times.length, span: (new Date(entries.at(-1).at) - new Date(entries[0].at)) / 1000 };
