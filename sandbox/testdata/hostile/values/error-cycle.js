// expect: error TypeError: result.self refers back to result: a cycle has no JSON form
const e = new Error("x");
e.self = e;
return e;
