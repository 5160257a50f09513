// expect: limit cpu time
const r = /a/y;
for (;;) r.test("b");
