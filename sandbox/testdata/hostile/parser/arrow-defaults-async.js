// expect: limit cpu time
return {{40 x "async(a="}}1{{40 x ")=>1"}};
