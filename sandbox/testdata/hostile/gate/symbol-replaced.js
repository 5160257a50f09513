// expect: result {"a":"a,b"}
Object.defineProperty(String.prototype, "split", { value: () => ["x"] });
String.prototype.replace = String.prototype.slice = () => "polluted";
return await codemode.echo__say({ a: "a,b" });
