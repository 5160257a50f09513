// expect: result {"codemode":{},"server":{}}
return { codemode, tool: codemode.echo__say, server: codemode.echo };
