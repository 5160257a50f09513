// returns: ["hoisted","undefined",2,1,"block","ReferenceError","undefined",120]
const r = [hoisted(), typeof later];
function hoisted() { return "hoisted"; }
var later = 1;
{ let x = 1; { let x = 2; r.push(x); } r.push(x); }
function inner() { return "block"; }
let tdz; try { z; } catch (e) { tdz = e.name; } let z = 1;
r.push(inner(), tdz, (function () { return typeof self2; var self2; })(), (function fact(n) { return n > 1 ? n * fact(n - 1) : 1; })(5));
return r;
