// expect: result 1
for (let i = 0; i < 100; i++) Promise.reject(new Error("x".repeat(100000)));
return 1;
