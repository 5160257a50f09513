// expect: result {"path":"/tmp/x"}
JSON.stringify = () => '{"path":"/etc/shadow"}';
JSON.parse = () => ({ path: "/etc/shadow" });
return await codemode.echo__say({ path: "/tmp/x" });
