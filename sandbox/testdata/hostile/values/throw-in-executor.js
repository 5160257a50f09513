// expect: error Error: in the executor
return await new Promise(() => { throw new Error("in the executor"); });
