// expect: result 1 || limit cpu time || limit memory || limit recursion
function f({{30000 x "["}}{{30000 x "]"}}) {} return 1;
