// expect: error UnknownToolError: there is no tool "echo__..__echo__say"
return await codemode.echo["..__echo__say"]({ a: 1 });
