// expect: result 1
console.log("\u001b[2J\u001b]0;title\u0007\u0000\r\u009b31m");
return 1;
