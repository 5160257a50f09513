// expect: result {"name":"TypeError","message":"x","cause":{"name":"Error","message":"y"}}
return new TypeError("x", { cause: new Error("y") });
