// expect: result [1,"lie"]
const n = new Number(1);
n.valueOf = () => "lie";
n.toString = () => "lie";
return [n, Object.assign(new String("s"), { toString: () => "lie" })];
