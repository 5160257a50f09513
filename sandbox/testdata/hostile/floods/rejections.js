// expect: result 1
for (let i = 0; i < 20000; i++) Promise.reject(new Error("e" + i));
return 1;
