// expect: limit memory
const a = [];
for (let i = 0; ; i++) a.push(class { m() { return i; } });
