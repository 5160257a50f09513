// expect: result 1999
let a = 0;
for (let i = 0; i < 999; i++) a = [a];
return JSON.stringify(a).length;
