// expect: limit cpu time
const s = "a,".repeat(2 ** 19);
for (;;) s.split(",").join(";");
