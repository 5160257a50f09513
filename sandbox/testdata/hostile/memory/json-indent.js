// expect: limit memory
let a = [];
for (let i = 0; i < 900; i++) a = [a, a.length];
return JSON.stringify(new Array(2 ** 20).fill(a.slice(0, 1)), null, 10).length;
