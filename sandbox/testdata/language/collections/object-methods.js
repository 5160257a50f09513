// returns: [["1","b","a"],3,true,{"q":"1","r":"2"},{"z":1},"TypeError",true,1,true,false,9,["a","b"],{"1":"x","b":1}]
const o = { b: 1, a: 2, 1: "x", [Symbol("s")]: 3 };
const frozen = Object.freeze({ x: 1 });
let err = "";
try { "use strict"; (() => { "use strict"; frozen.x = 2; })(); } catch (e) { err = e.constructor.name; }
return [Object.keys(o), Object.entries(o).length, Object.hasOwn(o, "a"), Object.fromEntries(new URLSearchParams("q=1&r=2")), Object.assign({}, null, { z: 1 }), err, Object.isFrozen(frozen), Object.getOwnPropertySymbols(o).length, Object.getOwnPropertyDescriptor({ get x() { return 1; } }, "x").set === undefined, Object.is(-0, 0), { ...o, c: 9 }.c, Object.values("ab"), (({ a, ...rest }) => rest)(o)];
