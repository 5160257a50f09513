// returns: [1,"no","plain"]
type Result<T> = { ok: true; value: T } | { ok: false; error: string };
const attempt = async <T>(f: () => Promise<T>): Promise<Result<T>> => {
  try { return { ok: true, value: await f() }; }
  catch (e) { return { ok: false, error: e instanceof Error ? e.message : String(e) }; }
};
const rs = await Promise.all([attempt(async () => 1), attempt<number>(async () => { throw new Error("no"); }), attempt(() => Promise.reject("plain"))]);
return rs.map((r) => (r.ok ? r.value : r.error));
