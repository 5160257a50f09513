// expect: limit memory
const all = []; function tag(s) { all.push(s); return s } for (;;) all.push(tag`${"x".repeat(1e4)}`, Function.prototype.toString.call(tag).repeat(1000));
