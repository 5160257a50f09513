// expect: error Error: x
const make = () => { const e = new Error("x"); Object.defineProperty(e, "cause", {get: make, enumerable: true}); return e }; throw make();
