// expect: result "12345678901234567890"
return String((await codemode.echo__say({ id: 12345678901234567890n })).id);
