// returns: [[1,2],[10,21],["a","b"],[1,2]]
async function* gen() { yield 1; yield Promise.resolve(2); }
return [await Array.fromAsync(gen()), await Array.fromAsync([Promise.resolve(1), 2], async (x, i) => x * 10 + i), await Array.fromAsync({ length: 2, 0: "a", 1: Promise.resolve("b") }), await Array.fromAsync(new Set([1, 1, 2]))];
