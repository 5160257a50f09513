// expect: error TypeError: codemode.raw: the first argument must be a name, got an object
let n = 0;
const name = { toString: () => (n++ ? "echo__wait" : "echo__say") };
return await codemode.raw(name, { a: 1 });
