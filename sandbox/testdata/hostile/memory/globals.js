// expect: limit memory || limit cpu time
for (let i = 0; ; i++) globalThis["g" + i] = new Array(100).fill(i);
