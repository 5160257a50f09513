// expect: error LimitError: codemode.echo__say was not sent: the limit of 16 MB of arguments is reac || limit memory
return await codemode.echo__say({ a: "x".repeat(17 * 2 ** 20) });
