// expect: result 1
for (let i = 0; i < 500; i++) { console.log("x".repeat(500)); await codemode.echo__say({ i }); }
return 1;
