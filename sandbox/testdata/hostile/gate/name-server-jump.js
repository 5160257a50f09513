// expect: result undefined
return await codemode.echo["__proto__"];
