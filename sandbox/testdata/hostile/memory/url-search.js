// expect: limit memory || limit cpu time
const u = new URLSearchParams();
for (let i = 0; ; i++) u.append("k" + i, "x".repeat(1000));
