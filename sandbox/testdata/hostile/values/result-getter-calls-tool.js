// expect: result {"a":1}
return {get a() { codemode.echo__say({from: "result"}); return 1 }};
