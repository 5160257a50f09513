// expect: limit cpu time
const f = new Intl.NumberFormat("en"); let n = 0; for (;;) { n += f.format(Number.MAX_VALUE).length + (1e21).toLocaleString("en").length + new Date(8.64e15).toLocaleString("en-US").length }
