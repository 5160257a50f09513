// returns: [[1,2,3],[3,2,1],[2,1,3],[9,1,2],[3,"x","y",2],[1,2,2],2,2,2,[1,2,3,4],[1,10,2,20],true,[1,2,2],[1]]
const a = [3, 1, 2];
return [a.toSorted(), a.toSorted((x, y) => y - x), a.toReversed(), a.with(0, 9), a.toSpliced(1, 1, "x", "y"), a, a.at(-1), a.findLast((n) => n > 1), a.findLastIndex((n) => n > 1), [1, [2, [3, [4]]]].flat(Infinity), [1, 2].flatMap((n) => [n, n * 10]), a.includes(2), a.copyWithin(0, 1), Array.of(7).fill(1)];
