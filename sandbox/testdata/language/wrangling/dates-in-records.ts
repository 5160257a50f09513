// returns: [{"n":1,"open":"Fri, Mar 1","took":54.5},{"n":2,"open":"Fri, Mar 1","took":null}]
const prs = [{ n: 1, opened: "2024-03-01T09:00:00Z", merged: "2024-03-03T15:30:00Z" }, { n: 2, opened: "2024-03-02T00:00:00Z", merged: null }];
const hours = (a: string, b: string) => Math.round(((+new Date(b) - +new Date(a)) / 36e5) * 10) / 10;
return prs.map((p) => ({ n: p.n, open: new Date(p.opened).toLocaleDateString("en-US", { weekday: "short", month: "short", day: "numeric", timeZone: "America/Los_Angeles" }), took: p.merged ? hours(p.opened, p.merged) : null }));
