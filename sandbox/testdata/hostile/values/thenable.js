// expect: result "then"
return { then(resolve) { resolve("then"); } };
