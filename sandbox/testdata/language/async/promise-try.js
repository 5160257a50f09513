// returns: [3,"sync","async"]
// node: 24
const ok = await Promise.try((a, b) => a + b, 1, 2);
const bad = await Promise.try(() => { throw new Error("sync"); }).catch((e) => e.message);
return [ok, bad, await Promise.try(async () => "async")];
