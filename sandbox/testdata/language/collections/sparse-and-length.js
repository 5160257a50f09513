// returns: [8,false,8,["0","2","7"],[1,3,8],"--",[0,1,2],[0,1,4],-1,true]
const a = [1, , 3];
a.length = 5; a[7] = 8;
return [a.length, 1 in a, a.map((x) => x ?? "gap").length, Object.keys(a), a.filter(() => true), Array(3).join("-"), [...Array(3).keys()], Array.from({ length: 3 }, (_, i) => i ** 2), [, 1].indexOf(undefined), [, 1].includes(undefined)];
