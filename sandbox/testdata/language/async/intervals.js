// returns: ["t0","t1","t2","immediate"]
const ticks = [];
await new Promise((done) => {
  const id = setInterval((label) => { ticks.push(label + ticks.length); if (ticks.length === 3) { clearInterval(id); done(); } }, 1, "t");
});
const never = setTimeout(() => ticks.push("never"), 1);
clearTimeout(never);
setImmediate((x) => ticks.push(x), "immediate");
await new Promise((r) => setTimeout(r, 4));
return ticks;
