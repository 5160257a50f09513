// expect: limit cpu time
return undefined{{60000 x "?.a"}};
