// returns: {"all":[1,"two",3],"settled":["fulfilled:1","rejected:no"],"any":"any","race":"fast"}
const wait = (ms, v) => new Promise((r) => setTimeout(r, ms, v));
const [all, settled, any, race] = await Promise.all([
  Promise.all([1, wait(2, "two"), Promise.resolve(3)]),
  Promise.allSettled([1, Promise.reject(new Error("no"))]),
  Promise.any([Promise.reject(1), wait(2, "any")]),
  Promise.race([wait(30, "slow"), wait(1, "fast")]),
]);
return { all, settled: settled.map((s) => s.status + ":" + (s.value ?? s.reason.message)), any, race };
