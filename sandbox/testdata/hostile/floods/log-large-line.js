// expect: result 1
console.log("x".repeat(2 ** 22));
return 1;
