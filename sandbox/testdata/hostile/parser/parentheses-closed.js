// expect: limit recursion || limit memory
return {{60000 x "("}}1{{60000 x ")"}};
