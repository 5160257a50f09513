// expect: result "undefined"
return typeof codemode["__proto__"];
