// returns: ["finally","no such file: missing.txt"]
async function retry<T>(f: () => Promise<T>, times = 3): Promise<T> {
  let last: unknown;
  for (let i = 0; i < times; i++) {
    try { return await f(); } catch (e) { last = e; await new Promise((r) => setTimeout(r, 2 ** i)); }
  }
  throw last;
}
return [await retry(() => codemode.flaky__get({})), await retry(() => codemode.fs__read_file({ path: "missing.txt" }), 2).catch((e) => e.message)];
