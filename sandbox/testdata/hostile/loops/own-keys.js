// expect: limit cpu time
const o = {};
for (let i = 0; i < 100000; i++) o["k" + i] = i;
for (;;) Reflect.ownKeys(o);
