// expect: limit memory || limit recursion
{{60000 x "a:"}};
