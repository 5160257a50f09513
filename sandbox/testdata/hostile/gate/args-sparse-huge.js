// expect: error LimitError: codemode.echo__say was not sent: the limit of 16 MB of arguments is reac || limit memory
const list = [];
list[2 ** 32 - 2] = 1;
return await codemode.echo__say({ list });
