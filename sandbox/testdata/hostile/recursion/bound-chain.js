// expect: limit memory || limit recursion
let f = () => 1;
for (let i = 0; i < 200000; i++) f = f.bind(null);
return f();
