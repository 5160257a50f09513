// returns: [[1,2,[]],[1,2,[3,4]],[5,6,[7]],{"0":"h","1":"i","a":2,"nested":{"x":9},"b":3},9,[1,2,3,"a","b"],5,1,2]
const f = (a, b = a + 1, ...c) => [a, b, c];
const base = { a: 1, nested: { x: 1 } }, copy = { ...base, a: 2, ...(true && { b: 3 }), ...(false && { c: 4 }), ...null, ..."hi" };
copy.nested.x = 9;
return [f(1), f(1, undefined, 3, 4), f(...[5, 6, 7]), copy, base.nested.x, [...[1, 2], ...new Set([3]), ..."ab"], Math.max(...[1, 5, 3]), f.length, ((...a) => a.length)(...[, ,])];
