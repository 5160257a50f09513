// returns: [true,"\\x61\\.b","\\x2dx","\\x66oo\\x20bar","\\/\\*"]
// node: 24
const q = "1+1=2? (yes) [a-b] $^ a|b";
return [new RegExp(RegExp.escape(q)).test(q), RegExp.escape("a.b"), RegExp.escape("-x"), RegExp.escape("foo bar"), RegExp.escape("/*")];
