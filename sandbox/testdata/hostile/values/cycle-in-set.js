// expect: error TypeError: result[0] refers back to result: a cycle has no JSON form
const s = new Set();
s.add(s);
return s;
