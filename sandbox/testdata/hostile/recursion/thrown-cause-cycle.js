// expect: error Error: round
const e = new Error("round");
e.cause = e;
throw e;
