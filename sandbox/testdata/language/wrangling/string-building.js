// returns: [2000,"56789","1;2;"]
let s = ""; for (let i = 0; i < 2000; i++) s += i % 10;
let rows = ""; for (const r of [{ a: 1 }, { a: 2 }]) rows += `${r.a};`;
return [s.length, s.slice(-5), rows];
