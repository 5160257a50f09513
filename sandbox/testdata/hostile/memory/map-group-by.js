// expect: limit memory
const a = Array.from({length: 1e5}, (_, i) => i); const all = []; for (;;) all.push(Map.groupBy ? Map.groupBy(a, x => x) : new Map(a.map(x => [x, x])), Object.groupBy ? Object.groupBy(a, x => x) : 0);
