// expect: result [{"a":1},1]
let n = 0;
const name = { toString: () => (n++ ? "echo__wait" : "echo__say") };
return [await codemode[name]({ a: 1 }), n];
