// expect: limit cpu time
return {{24 x "(a="}}1{{24 x ")=>1"}};
