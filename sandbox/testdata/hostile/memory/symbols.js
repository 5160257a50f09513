// expect: limit cpu time
const a = [];
for (let i = 0; ; i++) a.push(Symbol.for("s" + i));
