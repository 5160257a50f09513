// expect: limit memory || limit recursion
const f = () => f; return typeof f{{60000 x "()"}};
