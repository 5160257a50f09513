// expect: limit cpu time
const o = { toJSON() { return { o }; } };
return JSON.stringify(o);
