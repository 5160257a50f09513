// expect: result 2
let a = [{}];
for (let i = 0; i < 40; i++) a = [a, a];
return structuredClone(a).length;
