// expect: result "object"
let A = class {};
for (let i = 0; i < 20000; i++) A = class extends A {};
return typeof new A();
