// expect: limit cpu time
return {{60000 x "a=>"}}1;
