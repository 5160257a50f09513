// expect: error RangeError: not you
return await codemode.echo__say({ get a() { throw new RangeError("not you"); } });
