// expect: result {"list":[null]}
return { a: Symbol("x"), [Symbol("y")]: 1, list: [Symbol("z")] };
