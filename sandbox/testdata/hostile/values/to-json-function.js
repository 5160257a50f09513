// expect: result undefined
return { toJSON: () => () => 1 };
