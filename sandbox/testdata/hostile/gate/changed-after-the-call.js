// expect: result {"path":"/tmp/x","list":[1]}
const args = { path: "/tmp/x", list: [1] };
const call = codemode.echo__say(args);
args.path = "/etc/shadow";
args.list.push(2);
return await call;
