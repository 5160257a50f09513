// expect: error Error: the script waits for a promise that nothing will settle
await new Promise(() => {});
