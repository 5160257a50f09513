// expect: limit cpu time
return {{100000 x "- "}}1;
