// expect: error SyntaxError: invalid regular expression (re2): ((((((((((((((((((((((((((((((((((((( || limit memory || limit recursion
return /{{40000 x "("}}{{40000 x ")"}}/.test("");
