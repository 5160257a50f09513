// expect: limit cpu time
const list = Array.from({ length: 200000 }, (_, i) => "x".repeat(50) + ((i * 7919) % 200000));
for (;;) list.sort().reverse();
