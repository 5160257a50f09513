// expect: result "undefined"
return typeof codemode[Symbol("echo__say")];
