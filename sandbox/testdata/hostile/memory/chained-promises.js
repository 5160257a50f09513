// expect: limit memory
let p = new Promise(() => {});
for (;;) p = p.then((x) => x);
