// expect: error TypeError: result[0][0][0][0][0][0]\u2026[0][0][0][0][0][0] nests more than 1000 levels deep
let a = 0;
for (let i = 0; i < 1001; i++) a = [a];
return a;
