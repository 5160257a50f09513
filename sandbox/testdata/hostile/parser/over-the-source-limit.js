// expect: limit source
return "{{300000 x "a"}}".length;
