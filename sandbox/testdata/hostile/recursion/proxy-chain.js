// expect: limit memory || limit recursion
let p = {};
for (let i = 0; i < 200000; i++) p = new Proxy(p, {});
return p.a;
