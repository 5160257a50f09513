// returns: {"out":[{"number":1,"title":"a","count":1},{"number":2,"title":"b","count":0}],"labelled":["bug"]}
interface Issue { number: number; title: string; labels?: readonly string[] }
interface Labelled extends Issue { labels: string[] }
type Summary = Pick<Issue, "number" | "title"> & { count: number };
const issues: Issue[] = [{ number: 1, title: "a", labels: ["bug"] }, { number: 2, title: "b" }];
const isLabelled = (i: Issue): i is Labelled => Array.isArray(i.labels);
const out: Summary[] = issues.map(({ number, title, labels }) => ({ number, title, count: labels?.length ?? 0 }));
return { out, labelled: issues.filter(isLabelled).map((i) => i.labels[0]!) };
