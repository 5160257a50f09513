// expect: result 1
for (let i = 0; i < 100000; i++) console.group("g");
console.log("deep");
return 1;
