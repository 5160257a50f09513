// expect: limit recursion || limit memory
return {{60000 x "["}}{{60000 x "]"}};
