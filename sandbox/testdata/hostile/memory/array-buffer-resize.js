// expect: limit memory
const all = []; for (;;) { try { all.push(new ArrayBuffer(1 << 20, {maxByteLength: 1 << 30})); all.at(-1).resize?.(1 << 26) } catch (e) { if (!(e instanceof RangeError)) throw e } }
