// returns: ["user left",["event","on","AbortError"],true,"AbortError",true,"TimeoutError",true,"x"]
const c = new AbortController();
const log = [];
c.signal.addEventListener("abort", () => log.push("event"), { once: true });
c.signal.onabort = () => log.push("on");
const work = new Promise((ok, no) => {
  const t = setTimeout(ok, 1000);
  c.signal.addEventListener("abort", () => { clearTimeout(t); no(c.signal.reason); });
});
setTimeout(() => c.abort(new Error("user left")), 1);
const message = await work.catch((e) => e.message);
const d = new AbortController(); d.abort();
try { d.signal.throwIfAborted(); } catch (e) { log.push(e.name); }
const t = AbortSignal.timeout(1);
await new Promise((r) => setTimeout(r, 5));
return [message, log, c.signal.aborted, d.signal.reason.name, t.aborted, t.reason.name, AbortSignal.any([d.signal]).aborted, AbortSignal.abort("x").reason];
