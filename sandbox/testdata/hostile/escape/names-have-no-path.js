// expect: result [20,[]]
const functions = [codemode.echo__say, codemode.raw, codemode.read, codemode.search_tools, console.log, setTimeout, clearTimeout,
  structuredClone, queueMicrotask, atob, btoa, URL, TextEncoder, TextDecoder, crypto.randomUUID, performance.now, json, emit, Function, eval];
const texts = functions.map((f) => f.name + " " + String(f)).join("\n");
return [functions.length, functions.map((f) => f.name).filter((n) => /[\/.:]/.test(n))];
