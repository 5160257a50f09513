// expect: result "undefined"
const old = console.log; console.log = function () { return this === console ? eval : 1 }; try { return typeof console.log("x") } finally { console.log = old }
