// expect: result 40000
return "{{40000 x "\\u0061"}}".length;
