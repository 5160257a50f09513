// returns: [[1,2,3,4,5],[3,4],[1,2],[1,2,5],true,true,true,[2,1]]
const a = new Set([1, 2, 3, 4]), b = new Set([3, 4, 5]);
const l = (s) => [...s];
return [l(a.union(b)), l(a.intersection(b)), l(a.difference(b)), l(a.symmetricDifference(b)), new Set([3]).isSubsetOf(a), a.isSupersetOf(new Set([1, 2])), a.isDisjointFrom(new Set([9])), l(a.intersection(new Map([[2, "x"], [1, "y"]])))];
