// expect: limit memory
const keep = []; async function f(n) { const big = new Array(1000).fill(n); keep.push(codemode.echo__wait({n})); await keep[n]; return big } for (let i = 0; i < 1e6; i++) f(i).catch(() => {}); return keep.length;
