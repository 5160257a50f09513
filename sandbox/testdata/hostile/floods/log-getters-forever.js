// expect: result true
let n = 0; const o = {get a() { n++; return o }, get b() { return {get c() { n++; return o }} }}; console.log(o, [o, o], new Proxy(o, {})); console.table([o]); return n < 10000;
