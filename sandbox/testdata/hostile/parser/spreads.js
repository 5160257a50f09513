// expect: result 20000
return [{{20000 x "...[1],"}}].length;
