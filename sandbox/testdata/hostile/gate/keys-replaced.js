// expect: result {"path":"/tmp/x","list":[1,2]}
Object.keys = Object.entries = Object.getOwnPropertyNames = Reflect.ownKeys = () => ["other"];
Array.prototype.map = Array.prototype.join = Array.prototype.push = () => "polluted";
return await codemode.echo__say({ path: "/tmp/x", list: [1, 2] });
