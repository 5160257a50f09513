// returns: [[2,7],[2,5],[2,5],[5,7],[[0,2],[1,2],[3,4],null],true,false,"dg",[1,2],[2,3],[1,2]]
const m = /(?<word>[a-z]+)(\d+)?/d.exec("--abc12");
const g = /a(?<x>b)?/dg; const all = [];
for (const k of "ab a".matchAll(g)) all.push(k.indices[0], k.indices.groups.x ?? null);
return [m.indices[0], m.indices[1], m.indices.groups.word, m.indices[2], all, /x/d.hasIndices, /x/.hasIndices, /x/dg.flags, "é1".match(/\d/d).indices[0], "😀1".match(/\d/du).indices[0], new RegExp("b", "d").exec("ab").indices[0]];
