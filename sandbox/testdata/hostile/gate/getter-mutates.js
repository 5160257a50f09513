// expect: result {"a":1,"b":"changed"}
const args = { get a() { args.b = "changed"; return 1; }, b: "first" };
return await codemode.echo__say(args);
