// expect: error TypeError: result.b.c[0] refers back to result: a cycle has no JSON form
const a = { b: { c: [] } };
a.b.c.push(a);
return a;
