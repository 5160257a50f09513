// expect: error TypeError: result refers back to result: a cycle has no JSON form
const a = { toJSON: () => b }, b = { toJSON: () => a };
return a;
