// expect: error SyntaxError: JSX can't be read || limit memory || limit recursion
return {{30000 x "<a>"}}{{30000 x "</a>"}};
