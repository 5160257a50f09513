// expect: limit cpu time
let d = new Date(0); for (;;) { d.setMonth(1e15); d = new Date(Date.UTC(1e5, 1e9, -1e12)); d.setTime(0) }
