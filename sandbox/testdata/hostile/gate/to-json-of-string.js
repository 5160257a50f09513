// expect: result {"a":"text"}
String.prototype.toJSON = () => "polluted";
return await codemode.echo__say({ a: "text" });
