// expect: limit cpu time
const a = Array.from({length: 2e4}, (_, i) => "\u00e4".repeat(50) + i); for (;;) a.sort((x, y) => y.localeCompare(x));
