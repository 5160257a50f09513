// expect: result ["object","undefined","undefined"]
return [typeof (await codemode), typeof codemode.then, typeof codemode.echo.then];
