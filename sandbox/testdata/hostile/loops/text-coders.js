// expect: limit cpu time
const s = "x".repeat(2 ** 20);
for (;;) new TextDecoder().decode(new TextEncoder().encode(s));
