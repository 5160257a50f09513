// expect: limit cpu time
return {{50000 x "1**"}}1;
