// expect: limit cpu time
const s = "x".repeat(2 ** 20);
for (;;) atob(btoa(s));
