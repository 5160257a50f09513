// expect: result {"a":1}
const args = { get a() { args.z = "added"; return 1; } };
return await codemode.echo__say(args);
