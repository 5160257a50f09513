// returns: [true,"ReferenceError",true]
"use strict";
const f = function () { return this; };
let err; try { undeclared = 1; } catch (e) { err = e.name; }
return [f() === undefined, err, (() => { try { return eval("1"); } catch { return "blocked or one"; } })() !== undefined];
