// expect: result 1
for (let i = 0; i < 2000; i++) emit("h" + i);
return 1;
