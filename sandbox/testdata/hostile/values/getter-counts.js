// expect: result {"a":1,"b":2}
let n = 0;
return { get a() { return ++n; }, get b() { return ++n; } };
