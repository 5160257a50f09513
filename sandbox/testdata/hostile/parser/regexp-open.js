// expect: error SyntaxError: unterminated group || limit memory || limit recursion
return /{{60000 x "("}}/.test("");
