// expect: result ["undefined","undefined","undefined","undefined"]
return [typeof SharedArrayBuffer, typeof Atomics, typeof WebAssembly, typeof Worker];
