// expect: result 1
return Promise.resolve(Promise.resolve(1));
