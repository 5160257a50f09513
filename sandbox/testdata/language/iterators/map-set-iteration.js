// returns: [[["a",2],["c",3],["b",4]],["a","c","b"],[2,3,4],[1,2],[[1,1],[2,2]],{"a":2,"c":3,"b":4},3,false,"nan",true]
const m = new Map([["b", 1], ["a", 2]]);
m.set("c", 3).delete("b"); m.set("b", 4);
const s = new Set([3, 1, 3, 2]);
s.forEach((v, k, set) => { if (v === 1) set.delete(3); });
return [[...m], [...m.keys()], Array.from(m.values()), [...s], [...s.entries()], Object.fromEntries(m), m.size, s.has(3), new Map([[NaN, "nan"]]).get(NaN), new Map([[0, "z"]]).has(-0)];
