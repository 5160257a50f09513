// expect: error LimitError: x
const e = new Error("x");
e.name = "LimitError";
e.limit = "cpu time";
throw e;
