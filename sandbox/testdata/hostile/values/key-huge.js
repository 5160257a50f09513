// expect: result of 1048582 bytes || limit memory
return { ["k".repeat(2 ** 20)]: 1 };
