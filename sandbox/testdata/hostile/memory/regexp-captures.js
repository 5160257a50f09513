// expect: limit memory
const all = []; const s = "a".repeat(1e6); for (;;) all.push(/((((((((((a*))))))))))/.exec(s).map(x => x + "b"));
