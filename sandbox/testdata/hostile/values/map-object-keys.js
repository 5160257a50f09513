// expect: result [[{"a":1},1],["x",2]]
return new Map([[{ a: 1 }, 1], ["x", 2]]);
