// expect: result {"list":"polluted"}
Array.prototype.toJSON = () => "polluted";
return await codemode.echo__say({ list: [1, 2] });
