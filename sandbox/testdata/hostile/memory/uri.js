// expect: limit memory || limit cpu time
let s = "\u20ac";
for (;;) s = encodeURIComponent(s) + s;
