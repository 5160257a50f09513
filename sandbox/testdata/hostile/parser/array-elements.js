// expect: result 120000
return [{{120000 x "1,"}}].length;
