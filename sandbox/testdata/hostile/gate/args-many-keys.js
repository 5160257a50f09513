// expect: result 50000
const args = {};
for (let i = 0; i < 50000; i++) args["k" + i] = i;
return Object.keys(await codemode.echo__say(args)).length;
