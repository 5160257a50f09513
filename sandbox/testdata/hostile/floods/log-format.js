// expect: result 1
console.log("%s".repeat(100000), "x");
return 1;
