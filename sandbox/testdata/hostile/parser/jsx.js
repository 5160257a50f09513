// expect: error SyntaxError: unexpected "/" || limit memory || limit recursion
return {{30000 x "<a>"}}{{30000 x "</a>"}};
