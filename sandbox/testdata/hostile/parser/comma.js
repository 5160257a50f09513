// expect: result 1
return ({{100000 x "1,"}}1);
