// returns: [43,52,61,[7,6],"in"]
const found = [];
outer: for (let i = 1; i < 10; i++) {
  for (let j = 1; j < 10; j++) {
    if (j > i) continue outer;
    if (i * j === 42) { found.push([i, j]); break outer; }
    if ((i + j) % 7 === 0) found.push(i * 10 + j);
  }
}
block: { found.push("in"); if (found.length) break block; found.push("never"); }
return found;
