// expect: limit cpu time
const it = {[Symbol.asyncIterator]() { return this }, next: async () => ({value: 1}), return() { for (;;); }}; for await (const x of it) break;
