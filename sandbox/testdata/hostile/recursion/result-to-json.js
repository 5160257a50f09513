// expect: error TypeError: result.n.n.n.n.n.n\u2026.n.n.n.n.n.n nests more than 1000 levels deep
let n = 0;
const make = () => ({ toJSON: () => ({ n: make() }) });
return make();
