// expect: error TypeError: codemode.echo__say: arguments must be one object, got number 1
TypeError = Error = class { constructor() { this.name = "Mine"; } };
return await codemode.echo__say(1);
