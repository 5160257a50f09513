// expect: result "returned"
setTimeout(() => codemode.echo__say({late: 1}), 1); queueMicrotask(() => codemode.echo__say({late: 2})); return "returned";
