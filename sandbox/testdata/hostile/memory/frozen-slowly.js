// expect: limit memory || limit cpu time
const all = [];
for (let i = 0; ; i++) { all.push(new Array(2 ** 16).fill(i)); await null; }
