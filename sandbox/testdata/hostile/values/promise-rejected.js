// expect: error Error: second
return [Promise.resolve(1), Promise.reject(new Error("second"))];
