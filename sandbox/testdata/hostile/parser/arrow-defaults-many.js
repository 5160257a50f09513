// expect: limit cpu time || limit memory
return {{60 x "(a="}}1{{60 x ")=>1"}};
