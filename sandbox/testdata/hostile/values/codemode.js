// expect: result {}
return codemode;
