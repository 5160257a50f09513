// expect: result 1
return {{200000 x "9"}}n % 7n;
