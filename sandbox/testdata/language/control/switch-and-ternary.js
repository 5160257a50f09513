// returns: [["A","B","C","?"],["scalar","scalar","null","object","other","other"],"23"]
const grade = (n) => { switch (true) { case n >= 90: return "A"; case n >= 80: return "B"; default: return n < 0 ? "?" : "C"; } };
const kind = (x) => { switch (typeof x) { case "string": case "number": return "scalar"; case "object": { const r = x === null ? "null" : "object"; return r; } } return "other"; };
let log = ""; switch (2) { case 1: log += 1; case 2: log += 2; case 3: log += 3; break; case 4: log += 4; }
return [[95, 85, 10, -1].map(grade), ["", 0, null, {}, undefined, () => {}].map(kind), log];
