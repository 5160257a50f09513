// returns: {"r":[["none",null],["none",null],["a@b.c","hi x0"]],"n":1,"opts":{"a":6,"b":"z"},"del":true}
type User = { profile?: { emails?: string[]; greet?: (n: string) => string } };
const users: User[] = [{}, { profile: {} }, { profile: { emails: ["a@b.c"], greet: (n) => "hi " + n } }];
let n = 0;
const r = users.map((u) => [u.profile?.emails?.[0] ?? "none", u.profile?.greet?.("x" + n++) ?? null]);
const opts: { a?: number | null; b?: string } = { a: null };
opts.a ??= 5; opts.b ||= "z"; opts.a &&= opts.a + 1;
return { r, n, opts, del: delete users[2]?.profile?.emails };
