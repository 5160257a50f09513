// expect: result {"a":{}}
return {a: codemode, then: undefined, f: codemode.echo__say};
