// expect: limit cpu time
return {{60 x "(a="}}1{{60 x ")=>1"}};
