// expect: result [1,null,null,null,null,2]
const a = [1];
a[5] = 2;
return a;
