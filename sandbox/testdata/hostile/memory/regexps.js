// expect: limit memory
const all = [];
for (let i = 0; ; i++) all.push(new RegExp("a{" + (i % 1000) + "}b" + i));
