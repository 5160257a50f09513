// returns: {"ok":{"value":"ok3","tries":3,"waits":[1,2]},"failed":["gave up after 4","always"]}
const sleep = (ms: number) => new Promise<void>((r) => setTimeout(r, ms));
async function retry<T>(fn: (n: number) => Promise<T>, { attempts = 4, base = 1 } = {}): Promise<{ value: T; tries: number; waits: number[] }> {
  const waits: number[] = [];
  for (let i = 1; ; i++) {
    try { return { value: await fn(i), tries: i, waits }; }
    catch (e) {
      if (i >= attempts) throw new Error(`gave up after ${i}`, { cause: e });
      const ms = base * 2 ** (i - 1);
      waits.push(ms);
      await sleep(ms);
    }
  }
}
const ok = await retry(async (n) => { if (n < 3) throw new Error("busy"); return "ok" + n; });
const failed = await retry(async () => { throw new Error("always"); }).catch((e) => [e.message, e.cause.message]);
return { ok, failed };
