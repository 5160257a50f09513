// expect: result {}
return console;
