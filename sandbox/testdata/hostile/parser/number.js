// expect: result null
return {{200000 x "9"}};
