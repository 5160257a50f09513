// expect: error TypeError: result.m refers back to result: a cycle has no JSON form
const m = new Map();
m.set("m", m);
return m;
