// expect: result {"toJSON":"text","a":1}
return { toJSON: "text", a: 1 };
