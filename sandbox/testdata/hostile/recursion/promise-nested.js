// expect: limit memory || limit recursion
let p = Promise.resolve(1);
for (let i = 0; i < 100000; i++) p = p.then(() => p);
return typeof p;
