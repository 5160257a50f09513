// expect: result false
let o = {};
for (let i = 0; i < 200000; i++) o = Object.create(o);
return "a" in o;
