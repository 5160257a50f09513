// expect: limit recursion || limit memory || limit cpu time
return {{40000 x "`${"}}1{{40000 x "}`"}};
