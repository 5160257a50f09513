// expect: limit cpu time
const s = "\u20ac".repeat(2 ** 16);
for (;;) decodeURIComponent(encodeURIComponent(s));
