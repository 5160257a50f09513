// expect: result "undefined"
return typeof {{200000 x "a"}};
