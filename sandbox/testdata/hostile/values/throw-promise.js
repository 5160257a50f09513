// expect: error Error: the script threw a promise: Promise {\n  <rejected> Error: inner\n      at sc
throw Promise.reject(new Error("inner"));
