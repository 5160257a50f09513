// expect: result ["GoError","globalThis","global"]
const known = /^(Go|global|Web|Shared|Atomics|process|Deno|Bun|require|module|exports|__)/;
return Object.getOwnPropertyNames(globalThis).filter((name) => known.test(name));
