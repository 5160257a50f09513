// expect: limit memory
return "x".repeat(2 ** 15).replace(/(x*)/, "$1".repeat(2 ** 16)).length;
