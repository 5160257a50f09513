// expect: result 1000
let n = 0;
for (let i = 0; i < 3000; i++) { try { await codemode.echo__say({ i }); n++; } catch (e) { if (e.name !== "LimitError") throw e; } }
return n;
