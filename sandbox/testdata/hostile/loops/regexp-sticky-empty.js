// expect: limit cpu time
const r = /(?:)/gy; let n = 0; for (const m of "aaaa".matchAll(r)) { n++; } for (;;) { r.lastIndex = 0; r.test("a"); n++ }
