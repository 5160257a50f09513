// expect: error TypeError: codemode.echo__say: arguments must be one object, got string "{\"a\":1}"
return await codemode.echo__say('{"a":1}');
