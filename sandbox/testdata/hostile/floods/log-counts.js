// expect: result 1
for (let i = 0; i < 100000; i++) { console.count("c" + i); console.time("t" + i); }
return 1;
