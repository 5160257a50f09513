// returns: ["a\\+b\\(c\\)","**C++** is **c++**",true,["a","b","c"]]
const esc = (s) => s.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const hl = (t, q) => t.replace(new RegExp(`(${esc(q)})`, "gi"), "**$1**");
return [esc("a+b(c)"), hl("C++ is c++", "c++"), new RegExp(esc("[x]")).test("a[x]b"), "a.b*c".split(new RegExp(["\\.", "\\*"].join("|")))];
