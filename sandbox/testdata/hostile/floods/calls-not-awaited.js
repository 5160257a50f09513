// expect: result 1
for (let i = 0; i < 900; i++) codemode.echo__say({ i });
return 1;
