// expect: error ReferenceError: a is not defined || limit memory || limit recursion
return a{{100000 x ".a"}};
