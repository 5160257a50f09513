// expect: limit memory || limit recursion || limit cpu time
return {{9000 x "(function(){return "}}1{{9000 x "})()"}};
