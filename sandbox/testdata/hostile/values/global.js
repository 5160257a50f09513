// expect: result {"codemode":{}}
return globalThis;
