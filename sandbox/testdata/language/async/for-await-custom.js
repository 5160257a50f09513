// returns: [3,2,"a","b"]
const countdown = {
  from: 3,
  [Symbol.asyncIterator]() {
    let n = this.from;
    return { next: async () => (n > 0 ? { value: n--, done: false } : { value: undefined, done: true }), return: async () => ({ done: true }) };
  },
};
const out = [];
for await (const n of countdown) { if (n === 1) break; out.push(n); }
for await (const x of [Promise.resolve("a"), "b"]) out.push(x);
return out;
