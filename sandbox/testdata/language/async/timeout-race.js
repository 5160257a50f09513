// returns: ["fast","timed out after 3 ms"]
const withTimeout = (p, ms) => {
  let t;
  return Promise.race([p, new Promise((_, no) => { t = setTimeout(() => no(new Error(`timed out after ${ms} ms`)), ms); })]).finally(() => clearTimeout(t));
};
const fast = await withTimeout(Promise.resolve("fast"), 1000);
const slow = await withTimeout(new Promise((r) => setTimeout(r, 500)), 3).catch((e) => e.message);
return [fast, slow];
