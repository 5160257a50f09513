// expect: limit cpu time
return {{40 x "({a="}}1{{40 x "})=>1"}};
