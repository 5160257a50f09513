// expect: error Error: then
return { get then() { throw new Error("then"); } };
