// expect: result {"path":"/tmp/x"}
let n = 0;
return await codemode.echo__say({ get path() { return n++ ? "/etc/shadow" : "/tmp/x"; } });
