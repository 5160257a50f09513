// expect: limit cpu time
let s = "";
for (;;) { s += "x"; s.charCodeAt(s.length - 1); if (s.length > 1e6) s = ""; }
