// expect: result {"a":1}
try { codemode.echo.say = () => "mine"; } catch (e) {}
return await codemode.echo.say({ a: 1 });
